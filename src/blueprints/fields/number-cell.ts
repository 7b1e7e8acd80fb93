/** How a table writes numbers. */
export type DecimalMark = 'point' | 'comma'

const NUMBER_PATTERNS = { point: /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, comma: /^[+-]?(\d+,?\d*|,\d+)(e[+-]?\d+)?$/i }

const MAX_EXACT_DIGITS = 15 // a double holds every integer of so many digits

/** Parses the most common cells: a few digits, with or without a minus sign. Returns undefined for others. */
export function readShortInteger(cell: string): number | undefined {
  const isNegative = cell.startsWith('-')
  const start = isNegative ? 1 : 0
  if (cell.length === start || cell.length > start + MAX_EXACT_DIGITS) return
  let value = 0
  for (let at = start; at < cell.length; at++) {
    const digit = cell.charCodeAt(at) - 48
    if (digit < 0 || digit > 9) return
    value = 10 * value + digit
  }
  return isNegative ? -value : value
}

/** Returns the number of a cell with a decimal point and without a plus sign, or undefined when it is none. */
export function readNumber(cell: string, { decimal }: { decimal: DecimalMark }): string | undefined {
  const text = cell.trim()
  if (!NUMBER_PATTERNS[decimal].test(text)) return
  const pointed = decimal === 'comma' ? text.replace(',', '.') : text
  return pointed.startsWith('+') ? pointed.slice(1) : pointed
}
