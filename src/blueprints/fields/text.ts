import type { FieldType } from './field-type'
import { string } from './string'

/** Any text, long or short. */
export const text: FieldType = { ...string }
