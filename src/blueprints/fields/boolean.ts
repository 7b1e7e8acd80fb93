import { fieldType } from './field-type'

const BOOLEAN_BY_TEXT = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

/** Spreadsheets write `TRUE`, and Python `True`. */
const WORDS = new Map([
  ['true', true],
  ['false', false],
])

export const boolean = fieldType<boolean>({
  typescript: 'boolean',
  jsonSchema: { type: 'boolean' },
  check: (value) => (typeof value === 'boolean' ? undefined : 'must be true or false'),
  toIndexKey: (value) => (value ? 'true' : 'false'),
  fromIndexKey: (key) => key === 'true',
  parse: (text) => BOOLEAN_BY_TEXT.get(text),
  fromCell: (cell) => WORDS.get(cell.trim().toLowerCase()),
})
