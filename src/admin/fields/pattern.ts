const MAX_TEXT_LENGTH = 64
const MAX_CHOICES = 4

/** Returns a pattern with one letter for each character that it describes, so that what is left is its structure. */
const toStructure = (pattern: string) =>
  pattern
    .replace(/\\[pPu]\{[^}]*\}|\\./gu, 'a')
    .replace(/\[[^\]]*\]/g, 'a')
    .replace(/\(\?(?:[:=!]|P?<\w+>)/g, '(')
    .replace(/([^)])\{\d+\}/g, '$1')

/**
 * Tells whether the browser soon finds out if a short text matches. Unlike the server, it may try each way to read a
 * pattern such as (a+)+ and freeze the page.
 */
function isFast(pattern: string): boolean {
  const structure = toStructure(pattern)
  return !/\)[*+{]/.test(structure) && (structure.match(/[(?*+{]/g)?.length ?? 0) <= MAX_CHOICES
}

/** Returns whether a text matches a pattern of the server, or undefined when only the server can tell. */
export function matchesPattern(pattern: string, text: string): boolean | undefined {
  if (text.length > MAX_TEXT_LENGTH || !isFast(pattern)) return undefined
  try {
    return new RegExp(pattern, 'u').test(text)
  } catch {
    // The server's patterns have another syntax in places.
    return undefined
  }
}
