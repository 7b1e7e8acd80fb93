import type { CellNotation } from '../../blueprints/fields/cell-notation'
import { badRequest } from '../../core/problem'
import { parseOptional } from '../../core/shapes'
import { parseCells, SEPARATORS, type Separator } from './csv'

const SEPARATOR_NAMES: Record<string, Separator> = { comma: ',', semicolon: ';', tab: '\t', '\\t': '\t', pipe: '|' }
const SEPARATORS_MESSAGE = 'Cells can be separated by a comma, a semicolon, a tab or |.'

const NAMES: Record<Separator, string> = { ',': 'a comma', ';': 'a semicolon', '\t': 'a tab', '|': '|' }
export const describeSeparator = (separator: Separator) => NAMES[separator]

/** How the numbers of a table are written; its separator, where it is given. */
export type CsvOptions = { separator?: Separator; decimal: CellNotation['decimal'] }

/** Returns what a query says about a table; without a separator, `usual`. @throws 400 INVALID_INPUT */
export function parseCsvOptions(search: URLSearchParams, usual?: Separator): CsvOptions {
  const given = search.get('separator')
  // A tab may be sent as it is, and would not survive being trimmed.
  const text = given === '\t' ? given : parseOptional(given)
  const decimal = parseOptional(search.get('decimal')) ?? 'point'
  if (decimal !== 'point' && decimal !== 'comma')
    return badRequest({ path: 'decimal', message: 'decimal must be point or comma.' })
  const separator = text === undefined ? usual : toSeparator(text)
  if (text !== undefined && !separator)
    badRequest({ path: 'separator', message: `"${text}" cannot separate cells. ${SEPARATORS_MESSAGE}` })
  if (separator) assertUnambiguous(separator, decimal)
  return { separator, decimal }
}

function toSeparator(text: string): Separator | undefined {
  const name = text.toLowerCase()
  return (
    SEPARATORS.find((one) => one === text) ?? (Object.hasOwn(SEPARATOR_NAMES, name) ? SEPARATOR_NAMES[name] : undefined)
  )
}

/** @throws 400 for a comma that would be in numbers and between them */
export function assertUnambiguous(separator: Separator, decimal: CellNotation['decimal']) {
  if (decimal === 'comma' && separator === ',')
    badRequest({
      path: 'decimal',
      message:
        'Numbers cannot have a decimal comma where a comma separates the cells. Use separator=; or separator=tab.',
    })
}

/** Finds the separator of a table: as the query names it, else as the first line does, else as the header has it. */
export class CsvDialect {
  #separator?: Separator
  #isOpened = false

  /** `isHeader` tells whether a row names only known columns. */
  constructor(
    private options: CsvOptions,
    private isHeader: (cells: string[]) => boolean,
  ) {}

  /** The separator, once the header has been read. */
  get separator() {
    return this.#separator
  }

  /** Reads a line at the start of the file, and returns whether it is the header. @throws 400 */
  readFirstLine(line: string): boolean {
    const named = this.#isOpened ? undefined : /^"?sep=(.+?)"?$/i.exec(line)?.[1]
    this.#isOpened = true
    if (named === undefined) {
      this.#separator = this.options.separator ?? this.#findSeparator(line)
      assertUnambiguous(this.#separator, this.options.decimal)
      return true
    }
    const separator = toSeparator(named)
    if (!separator) badRequest({ path: '', message: `The first line is sep=${named}. ${SEPARATORS_MESSAGE}` })
    this.options = { separator, ...withoutUndefined(this.options) }
    return false
  }

  #findSeparator(header: string): Separator {
    const unquoted = header.replace(/"(?:[^"]|"")*"/g, '')
    const possible = SEPARATORS.filter((one) => unquoted.includes(one))
    if (possible.length < 2) return possible[0] ?? ','
    const fitting = possible.filter((one) => this.isHeader(parseCells(header, one) ?? ['']))
    if (fitting.length === 1) return fitting[0]!
    const [one, other] = possible.map(describeSeparator)
    return badRequest({
      path: '',
      message: `The first line has both ${one} and ${other} between its cells. Separate all cells alike, or name the separator: ?separator=tab, comma, semicolon or pipe.`,
    })
  }
}

const withoutUndefined = ({ separator, decimal }: CsvOptions): CsvOptions =>
  separator ? { separator, decimal } : { decimal }
