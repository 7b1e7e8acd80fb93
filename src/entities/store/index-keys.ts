import { isTruncated, numberKey, numberOf, textKey, textOf } from '../../blueprints/fields/sort-keys'
import type { Model, ModelField } from '../../blueprints/model'
import { badRequest } from '../../core/problem'

/** By which texts an entity is found: `f<number>` or `f<number>.<path>` to one, or to several. */
export type IndexKeys = Record<string, string | string[]>

/** A row of the index but for its entity: field number, path, value. */
export type IndexRow = [field: number, path: string, value: string]

const MAX_INDEX_ROWS = 2_000 // rows of one entity

/** The parts of an object can be of any type, so their texts begin with one. */
export const toPartKey = (value: string | number | boolean) =>
  typeof value === 'string' ? `s${textKey(value)}` : typeof value === 'number' ? `n${numberKey(value)}` : `b${value}`

export const isTruncatedPart = (key: string) => key.startsWith('s') && isTruncated(key.slice(1))

/** The part behind its key, or how it begins. */
export function parsePartKey(key: string): string | number | boolean {
  const rest = key.slice(1)
  return key.startsWith('s') ? textOf(rest) : key.startsWith('n') ? numberOf(rest) : rest === 'true'
}

export const fieldLabel = ({ number }: Pick<ModelField, 'number'>, path = '') =>
  path ? `f${number}.${path}` : `f${number}`

/** Whether a field has one text at most, which a query can read from the entity's row. */
export const isSingleValued = (field: ModelField) => !field.multi && !!field.kind.toIndexKey

/** Whether a field has rows in the index. By those of relations, entities find who refers to them, so they always have. */
export const isIndexed = (field: ModelField) => field.indexed !== false || !!field.target

/** The texts of a document's properties. Fields that aren't indexed keep theirs only when it is single. */
export function toIndexKeys(model: Model, doc: Record<string, unknown>): IndexKeys {
  const keys: IndexKeys = {}
  for (const field of model.fields) {
    const value = doc[field.key]
    if (value === undefined) continue
    const { kind } = field
    if (isSingleValued(field)) keys[fieldLabel(field)] = kind.toIndexKey!(value)
    else if (!isIndexed(field)) continue
    else if (kind.toIndexKey)
      keys[fieldLabel(field)] = [...new Set((value as unknown[]).map((one) => kind.toIndexKey!(one)))]
    else for (const [path, values] of collectParts(value)) keys[fieldLabel(field, path)] = [...values]
  }
  return keys
}

/** The rows that an entity with these keys has in the index; without a model those that it may have at most. */
export function toIndexRows(model: Model | undefined, keys: IndexKeys): IndexRow[] {
  const indexed = model && getIndexedNumbers(model)
  const rows: IndexRow[] = []
  for (const label in keys) {
    const values = keys[label]!
    const dot = label.indexOf('.')
    const [number, path] = dot < 0 ? [label.slice(1), ''] : [label.slice(1, dot), label.slice(dot + 1)]
    if (indexed && !indexed.has(Number(number))) continue
    for (const value of typeof values === 'string' ? [values] : values) rows.push([Number(number), path, value])
  }
  if (model && rows.length > MAX_INDEX_ROWS) throwTooManyValues(rows.length)
  return rows
}

const indexedNumbers = new WeakMap<Model, Set<number>>()

/** The numbers of the fields that have rows in the index. */
function getIndexedNumbers(model: Model) {
  const fieldNumbers = indexedNumbers.get(model) ?? new Set(model.fields.filter(isIndexed).map(({ number }) => number))
  indexedNumbers.set(model, fieldNumbers)
  return fieldNumbers
}

/** Characters of a path into an object; longer ones are not kept. */
export const MAX_PATH_LENGTH = 256

/** The scalars in an object by their dotted paths; lists are passed through. */
function collectParts(value: unknown, path = '', collected = new Map<string, Set<string>>(), count = { of: 0 }) {
  if (Array.isArray(value)) for (const one of value) collectParts(one, path, collected, count)
  else if (value !== null && typeof value === 'object') {
    for (const [key, part] of Object.entries(value))
      if (key) collectParts(part, path ? `${path}.${key}` : key, collected, count)
  } else if (value !== null && path) {
    if (path.length > MAX_PATH_LENGTH)
      badRequest({ path: '', message: `The path of a value is longer than ${MAX_PATH_LENGTH} characters.` })
    if (++count.of > MAX_INDEX_ROWS) throwTooManyValues(count.of)
    const partKeys = collected.get(path) ?? new Set()
    collected.set(path, partKeys.add(toPartKey(value as string | number | boolean)))
  }
  return collected
}

const throwTooManyValues = (count: number) =>
  badRequest({
    path: '',
    message: `An entity can have at most ${MAX_INDEX_ROWS} indexed values; this one has ${count}.`,
  })
