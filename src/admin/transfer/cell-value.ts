import type { Field } from '../api/schema'

const TRUE_WORDS = ['true', 'yes', 'y', '1', 'x']
const FALSE_WORDS = ['false', 'no', 'n', '0']
const LOCAL_TIME = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?$/
/** An export writes an apostrophe before such a text, so that no spreadsheet reads it as a formula. */
const FORMULA = /^'+[=+\-@\t\r\n＝＋－＠]/

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function toBoolean(text: string): unknown {
  const word = text.toLowerCase()
  return TRUE_WORDS.includes(word) ? true : FALSE_WORDS.includes(word) ? false : text
}

const toNumber = (text: string): unknown =>
  /^-?(\d+|\d*\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : text

/** A time without a zone is a local one. */
function toTime(text: string): unknown {
  const time = new Date(text.replace(' ', 'T'))
  return LOCAL_TIME.test(text) && !Number.isNaN(time.getTime()) ? time.toISOString() : text
}

/** Lists are JSON, as exports write them, or texts between semicolons, bars or commas. */
function toList(text: string, field: Field): unknown {
  const list = text.startsWith('[') ? readJson(text) : undefined
  if (Array.isArray(list)) return list
  const separator = /[;|]/.test(text) ? /[;|]/ : /,/
  return text
    .split(separator)
    .map((part) => part.trim())
    .filter(Boolean)
    .map((part) => toValue(part, { ...field, multi: false }))
}

/** Returns the value of a cell. What is no value of the field stays as it is, so that the server says why it is none. */
function toValue(text: string, field: Field): unknown {
  if (field.multi) return toList(text, field)
  switch (field.type) {
    case 'boolean':
      return toBoolean(text)
    case 'number':
    case 'integer':
      return toNumber(text)
    case 'datetime':
      return toTime(text)
    case 'object':
      return readJson(text) ?? text
    default:
      return FORMULA.test(text) ? text.slice(1) : text
  }
}

/** Returns the value of a cell of a CSV file for a field; an empty cell is no value. */
export function parseCell(cell: string, field: Field | undefined): unknown {
  const text = field?.type === 'text' ? cell : cell.trim()
  if (text === '') return undefined
  return field ? toValue(text, field) : text
}
