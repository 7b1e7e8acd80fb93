/** What bundlers put into names: `-` or `.`, a hash, and the extension, also that of a source map. */
const HASHED_NAME = /[-._]([A-Za-z0-9]{6,64})\.(?:chunk\.)?(?:js|mjs|css)?\.?[a-z0-9]{2,5}$/
const HEX_HASH = /^(?=.*\d)(?=.*[a-f])[a-f0-9]{8,}$/
const MIXED_HASH = /^(?=.*\d)(?=.*[a-z])(?=.*[A-Z])/
/** `Summer2024` is a word with a number. */
const WORD_WITH_NUMBER = /^[A-Z]?[a-z]+\d+$/

/**
 * Tells whether the name of a file holds a hash of its content, as Vite, webpack and others make them. What looks like a
 * word, a date or a size does not count, because browsers would never ask for the file again.
 */
export function isHashedName(path: string): boolean {
  if (path.endsWith('.html')) return false
  const hash = HASHED_NAME.exec(path.slice(path.lastIndexOf('/') + 1))?.[1]
  if (!hash) return false
  return HEX_HASH.test(hash) || (MIXED_HASH.test(hash) && !WORD_WITH_NUMBER.test(hash))
}
