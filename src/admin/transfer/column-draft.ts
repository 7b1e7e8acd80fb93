import { type DecimalMark, readNumber } from '../../blueprints/fields/number-cell'
import type { Field } from '../api/schema'
import type { FieldType } from '../fields/field-kind'
import { type ColumnTargets, IDENTIFIER } from './column-match'
import type { RowFile } from './file-rows'
import { guessType } from './type-guess'

const MAX_KEY_CHARACTERS = 63
/** Names that each entity has already. */
const RESERVED_KEYS = ['identifier', 'created', 'updated', 'user', 'workspace', 'metadata', 'blueprint', 'tenant', 'id']
const IDENTIFIER_COLUMNS = ['identifier', 'id']
/** What an export has beside the fields. */
const EXPORT_COLUMNS = ['created', 'updated', 'user', 'workspace']

/** What becomes of a column in a new blueprint: a field of a type, the identifier, or nothing. */
export type ColumnDraft = { column: string; key: string; type: FieldType | typeof IDENTIFIER | '' }

const splitWords = (name: string) =>
  name
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .split(/[^a-zA-Z0-9]+/)
    .filter(Boolean)

/** Returns the key of a field for a name of a column, such as firstName for "First name". */
function toFieldKey(column: string, taken: readonly string[]): string {
  const words = splitWords(column.replace(/^[^\p{L}]+/u, ''))
  const joined = words.map((word, n) =>
    n
      ? word.charAt(0).toUpperCase() + word.slice(1)
      : word === word.toUpperCase()
        ? word.toLowerCase()
        : word.charAt(0).toLowerCase() + word.slice(1),
  )
  const key = joined.join('').slice(0, MAX_KEY_CHARACTERS - 3) || 'field'
  let unique = key
  for (let at = 2; taken.includes(unique) || RESERVED_KEYS.includes(unique); at++) unique = `${key}${at}`
  return unique
}

/** Types are guessed by numbers with a decimal point. */
const toPointNumber = (value: unknown, decimal: DecimalMark) =>
  decimal === 'comma' && typeof value === 'string' ? (readNumber(value, { decimal }) ?? value) : value

/** Returns what most likely becomes of the columns of a file. */
export function draftColumns({ columns, sample }: RowFile, decimal: DecimalMark = 'point'): ColumnDraft[] {
  const isExport = columns.includes('_id')
  const drafts: ColumnDraft[] = []
  for (const column of columns) {
    const key = toFieldKey(
      column,
      drafts.map((draft) => draft.key),
    )
    const isSystem = isExport && (column === '_id' || EXPORT_COLUMNS.includes(column))
    const isIdentifier =
      IDENTIFIER_COLUMNS.includes(column.toLowerCase()) && !drafts.some(({ type }) => type === IDENTIFIER)
    const type = isSystem
      ? ''
      : isIdentifier
        ? IDENTIFIER
        : guessType(sample.map(({ values }) => toPointNumber(values[column], decimal)))
    drafts.push({ column, key, type })
  }
  return drafts
}

/** Returns the name of a blueprint for a file: "board-games_2024.csv" is "Board games 2024". */
export function toBlueprintName(fileName: string): string {
  const words = fileName
    .replace(/\.\w+$/, '')
    .split(/[\s_-]+/)
    .filter(Boolean)
    .join(' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Returns the fields that the columns become. A field keeps the name of its column as its title. */
export const toFields = (drafts: readonly ColumnDraft[]): Field[] =>
  drafts.flatMap(({ column, key, type }) =>
    type && type !== IDENTIFIER
      ? [{ key, type, ...(column !== key && { title: column.slice(0, MAX_KEY_CHARACTERS) }) }]
      : [],
  )

/** Returns which field each column fills. */
export const toTargets = (drafts: readonly ColumnDraft[]): ColumnTargets =>
  Object.fromEntries(
    drafts.filter(({ type }) => type).map(({ column, key, type }) => [column, type === IDENTIFIER ? IDENTIFIER : key]),
  )
