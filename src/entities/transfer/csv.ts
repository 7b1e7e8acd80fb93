/**
 * A spreadsheet reads a text that begins like this as a formula (OWASP, "CSV injection"); an apostrophe before it makes
 * it text. Reading removes one apostrophe, so that every text survives a round trip.
 */
const FORMULA_PATTERN = /^'*[=+\-@\t\r\n＝＋－＠]/

/** Returns a text for a cell, with an apostrophe if a spreadsheet would read it as a formula. */
export const escapeFormula = (text: string) => (FORMULA_PATTERN.test(text) ? `'${text}` : text)
export const unescapeFormula = (cell: string) =>
  cell.startsWith("'") && FORMULA_PATTERN.test(cell) ? cell.slice(1) : cell

/** The characters that may separate cells. */
export const SEPARATORS = [',', ';', '\t', '|'] as const
export type Separator = (typeof SEPARATORS)[number]

/** Returns a row of RFC 4180 with its line break. */
export const toCsvRow = (cells: string[], separator: Separator) =>
  `${cells.map((cell) => quoteCell(cell, QUOTED_PATTERNS[separator])).join(separator)}\r\n`

/** Returns the first row. Whatever might separate cells is quoted in it, so that readers find out what does. */
export const toCsvHeader = (cells: string[], separator: Separator) =>
  `${cells.map((cell) => quoteCell(cell, /[",;|\t\r\n]|^\s|\s$/)).join(separator)}\r\n`

const QUOTED_PATTERNS: Record<Separator, RegExp> = {
  ',': /[",\r\n]|^\s|\s$/,
  ';': /[";\r\n]|^\s|\s$/,
  '\t': /["\t\r\n]|^\s|\s$/,
  '|': /["|\r\n]|^\s|\s$/,
}
const quoteCell = (cell: string, quoted: RegExp) => (quoted.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)

/** Returns the cells of a row without its line break, or undefined when its quotes are malformed. */
export function parseCells(row: string, separator: Separator): string[] | undefined {
  if (!row.includes('"')) return row.split(separator)
  const cells: string[] = []
  for (let at = 0; ; ) {
    if (row[at] !== '"') {
      const end = row.indexOf(separator, at)
      const cell = end < 0 ? row.slice(at) : row.slice(at, end)
      if (cell.includes('"')) return
      cells.push(cell)
      if (end < 0) return cells
      at = end + 1
      continue
    }
    let close = at + 1
    for (;;) {
      close = row.indexOf('"', close)
      if (close < 0) return
      if (row[close + 1] !== '"') break
      close += 2
    }
    cells.push(row.slice(at + 1, close).replaceAll('""', '"'))
    if (close + 1 === row.length) return cells
    if (row[close + 1] !== separator) return
    at = close + 2
  }
}
