import { textMatching } from '../core/shapes'
import type { Definition, Field } from './shapes'

const FILES_PATH = '/api/files/'
const SIDE = '([1-9]\\d{0,2}|1\\d{3}|2000)'

/** The shape of a size of thumbnails. */
export const ThumbnailSize = textMatching(
  `^${SIDE}x${SIDE}$`,
  'Write a size as width x height, such as 400x300; each side has 1 to 2000 pixels.',
)

/**
 * Returns whether a field can name files of this server, so that who may read it may read them. Its index tells where a
 * file is named, so a field without one cannot; nor can a computed one, whose values no writer answers for.
 */
export const namesFiles = (
  { computed }: Pick<Definition, 'computed'>,
  field: Pick<Field, 'key' | 'type' | 'indexed'>,
): boolean => field.type === 'file' && field.indexed !== false && !(computed && Object.hasOwn(computed, field.key))

/** Returns the id of the file of this server that a value names, by its path or by its `_id`; undefined for other URLs. */
export function parseFileId(value: unknown): string | undefined {
  if (typeof value !== 'string') return
  if (isFilePath(value)) return value.slice(FILES_PATH.length).split(/[/?#]/, 1)[0]
  return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(value) ? value : undefined
}

/** Returns whether a value is a path of a file of this server. */
export const isFilePath = (value: unknown): value is string => typeof value === 'string' && value.startsWith(FILES_PATH)

/** Returns the path with which the URLs of a file begin. */
export const filePathOf = (id: string) => `${FILES_PATH}${id}/`

/** Returns what the values of a file field are, as sentences for descriptions; undefined for other fields. */
export function describeFileField({ type, accept, maxSize, thumbs }: Field): string | undefined {
  if (type !== 'file') return
  const limits = [accept?.join(', '), maxSize !== undefined && `up to ${maxSize}`].filter(Boolean).join(', ')
  const sizes = thumbs?.length ? ` Thumbnails also of ${thumbs.join(', ')}.` : ''
  return `The URL of a file. To write, also the \`_id\` of one.${limits && ` Files of this server: ${limits}.`}${sizes}`
}
