import { readList } from '../../core/list-text'

/** Returns the names in the text of an option that takes several; none for a malformed list. */
export const parseNames = (text: string): string[] => readList(text) ?? []
