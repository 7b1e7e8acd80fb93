import { type DecimalMark, readNumber } from '../../blueprints/fields/number-cell'
import { isExact, parseExactJson } from '../../core/exact-numbers'
import type { Field } from '../api/schema'

const TRUE_WORDS = ['true', 'yes', 'y', '1', 'x']
const NUMBER_TYPES: readonly string[] = ['number', 'integer', 'decimal']
const FALSE_WORDS = ['false', 'no', 'n', '0']
/** An export writes an apostrophe before such a text, so that no spreadsheet reads it as a formula. */
const FORMULA = /^'+[=+\-@\t\r\n＝＋－＠]/

function readJson(text: string): unknown {
  try {
    return parseExactJson(text)
  } catch {
    return undefined
  }
}

function toBoolean(text: string): unknown {
  const word = text.toLowerCase()
  return TRUE_WORDS.includes(word) ? true : FALSE_WORDS.includes(word) ? false : text
}

/** The server would take a point for that of a decimal number. @throws Error for a number with a point where the file has decimal commas */
function toNumberText(text: string, decimal: DecimalMark): string | undefined {
  const number = readNumber(text, { decimal })
  if (number === undefined && decimal === 'comma' && text.includes('.'))
    throw new Error(`"${text}" is not a number with a decimal comma. Write it without points.`)
  return number
}

function toNumber(text: string, decimal: DecimalMark): unknown {
  const number = toNumberText(text, decimal)
  return number !== undefined && isExact(number) ? Number(number) : text
}

/** Lists are JSON, as exports write them, or texts between semicolons, bars or commas. */
function toList(text: string, field: Field, decimal: DecimalMark): unknown {
  const list = text.startsWith('[') ? readJson(text) : undefined
  if (Array.isArray(list)) return list
  const separator = /[;|]/.test(text) || (decimal === 'comma' && NUMBER_TYPES.includes(field.type)) ? /[;|]/ : /,/
  return text
    .split(separator)
    .map((part) => part.trim())
    .filter(Boolean)
    .map((part) => toValue(part, { ...field, multi: false }, decimal))
}

/** Returns the value of a cell. What is no value of the field stays as it is, so that the server says why it is none. */
function toValue(text: string, field: Field, decimal: DecimalMark): unknown {
  if (field.multi) return toList(text, field, decimal)
  switch (field.type) {
    case 'boolean':
      return toBoolean(text)
    case 'number':
    case 'integer':
      return toNumber(text, decimal)
    case 'decimal':
      return toNumberText(text, decimal) ?? text
    case 'object':
      return readJson(text) ?? text
    default:
      return FORMULA.test(text) ? text.slice(1) : text
  }
}

/** Returns the value of a cell of a CSV file for a field; an empty cell is no value. @throws Error for an ambiguous number */
export function parseCell(cell: string, field: Field | undefined, decimal: DecimalMark = 'point'): unknown {
  const text = field?.type === 'text' ? cell : cell.trim()
  if (text === '') return undefined
  return field ? toValue(text, field, decimal) : text
}
