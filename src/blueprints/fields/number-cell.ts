/** How a table writes numbers. */
export type DecimalMark = 'point' | 'comma'

const NUMBER_PATTERNS = { point: /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, comma: /^[+-]?(\d+,?\d*|,\d+)(e[+-]?\d+)?$/i }

/** Returns the number of a cell with a decimal point and without a plus sign, or undefined when it is none. */
export function readNumber(cell: string, { decimal }: { decimal: DecimalMark }): string | undefined {
  const text = cell.trim()
  if (!NUMBER_PATTERNS[decimal].test(text)) return
  const pointed = decimal === 'comma' ? text.replace(',', '.') : text
  return pointed.startsWith('+') ? pointed.slice(1) : pointed
}
