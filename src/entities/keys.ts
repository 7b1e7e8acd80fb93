import { isCut, numberKey, numberOf, textKey, textOf } from '../blueprints/fields/keys'
import type { Model, ModelField } from '../blueprints/model'
import { invalid } from '../core/problem'

/** By which texts an entity is found: `f<number>` or `f<number>.<path>` to one, or to several. */
export type Keys = Record<string, string | string[]>

/** A row of the index but for its entity: field number, path, value. */
export type IndexRow = [field: number, path: string, value: string]

const MOST = 2_000 // rows of one entity

/** The parts of an object can be of any type, so their texts begin with one. */
export const partKey = (value: string | number | boolean) =>
  typeof value === 'string' ? `s${textKey(value)}` : typeof value === 'number' ? `n${numberKey(value)}` : `b${value}`

export const isCutPart = (key: string) => key.startsWith('s') && isCut(key.slice(1))

/** The part behind its key, or how it begins. */
export function partOf(key: string): string | number | boolean {
  const rest = key.slice(1)
  return key.startsWith('s') ? textOf(rest) : key.startsWith('n') ? numberOf(rest) : rest === 'true'
}

export const labelOf = ({ number }: Pick<ModelField, 'number'>, path = '') =>
  path ? `f${number}.${path}` : `f${number}`

/** Whether a field has one text at most, which a query can read from the entity's row. */
export const isSingle = (field: ModelField) => !field.multi && !!field.kind.key

/** Whether a field has rows in the index. By those of relations, entities find who refers to them, so they always have. */
export const isIndexed = (field: ModelField) => field.indexed !== false || !!field.target

/** The texts of a document's properties. Fields that aren't indexed keep theirs only when it is single. */
export function keysOf(model: Model, doc: Record<string, unknown>): Keys {
  const keys: Keys = {}
  for (const field of model.fields) {
    const value = doc[field.key]
    if (value === undefined) continue
    const { kind } = field
    if (isSingle(field)) keys[labelOf(field)] = kind.key!(value)
    else if (!isIndexed(field)) continue
    else if (kind.key) keys[labelOf(field)] = [...new Set((value as unknown[]).map((one) => kind.key!(one)))]
    else for (const [path, found] of parts(value)) keys[labelOf(field, path)] = [...found]
  }
  return keys
}

/** The rows that an entity with these keys has in the index; without a model those that it may have at most. */
export function rowsOf(model: Model | undefined, keys: Keys): IndexRow[] {
  const indexed = model && indexedOf(model)
  const rows: IndexRow[] = []
  for (const label in keys) {
    const values = keys[label]!
    const dot = label.indexOf('.')
    const [number, path] = dot < 0 ? [label.slice(1), ''] : [label.slice(1, dot), label.slice(dot + 1)]
    if (indexed && !indexed.has(Number(number))) continue
    for (const value of typeof values === 'string' ? [values] : values) rows.push([Number(number), path, value])
  }
  if (model && rows.length > MOST) refuseSoMany(rows.length)
  return rows
}

const numbers = new WeakMap<Model, Set<number>>()

/** The numbers of the fields that have rows in the index. */
function indexedOf(model: Model) {
  const known = numbers.get(model) ?? new Set(model.fields.filter(isIndexed).map(({ number }) => number))
  numbers.set(model, known)
  return known
}

/** Characters of a path into an object; longer ones are not kept. */
export const PATH = 256

/** The scalars in an object by their dotted paths; lists are passed through. */
function parts(value: unknown, path = '', found = new Map<string, Set<string>>(), count = { of: 0 }) {
  if (Array.isArray(value)) for (const one of value) parts(one, path, found, count)
  else if (value !== null && typeof value === 'object') {
    for (const [key, part] of Object.entries(value)) if (key) parts(part, path ? `${path}.${key}` : key, found, count)
  } else if (value !== null && path) {
    if (path.length > PATH) invalid({ path: '', message: `The path of a value is longer than ${PATH} characters.` })
    if (++count.of > MOST) refuseSoMany(count.of)
    const known = found.get(path) ?? new Set()
    found.set(path, known.add(partKey(value as string | number | boolean)))
  }
  return found
}

const refuseSoMany = (count: number) =>
  invalid({ path: '', message: `An entity has at most ${MOST} values that can be found; this one has ${count}.` })
