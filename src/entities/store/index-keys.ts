import type { CompoundParts } from '../../blueprints/compound-parts'
import { isNeverIndexed, type MaintainedIndexes } from '../../blueprints/field-indexes'
import { isTruncated, numberKey, numberOf, textKey, textOf } from '../../blueprints/fields/index-key-codec'
import type { Model, ModelField } from '../../blueprints/model'
import { badRequest } from '../../core/problem'
import type { Owners } from '../history/version'
import { toCompoundPath } from './compound-keys'

/**
 * The index keys by which an entity is found, by labels: `f12` for the field with number 12, `f12.city` for a path into
 * it. A field with several values has a list of keys.
 */
export type IndexKeys = Record<string, string | string[]>

/** A row of the index without its entity: field number, path, value. */
export type IndexRow = [field: number, path: string, value: string]

const MAX_INDEX_ROWS = 2_000 // rows of one entity's lists and objects

/**
 * Returns the index key of a value in an object. Such values can be of any type, so their keys begin with a letter for
 * it (`s`, `n`, `b`), and the types sort apart.
 */
export const toPartKey = (value: string | number | boolean) =>
  typeof value === 'string' ? `s${textKey(value)}` : typeof value === 'number' ? `n${numberKey(value)}` : `b${value}`

/** Returns whether the text of an index key in an object is longer than the index keeps. */
export const isTruncatedPart = (key: string) => key.startsWith('s') && isTruncated(key.slice(1))

/** Returns the value of an index key, or its beginning if the key is truncated. */
export function parsePartKey(key: string): string | number | boolean {
  const rest = key.slice(1)
  return key.startsWith('s') ? textOf(rest) : key.startsWith('n') ? numberOf(rest) : rest === 'true'
}

/** Returns the label of a field, or of a path into it, in `IndexKeys`. */
export const fieldLabel = ({ number }: Pick<ModelField, 'number'>, path = '') =>
  path ? `f${number}.${path}` : `f${number}`

/** Returns whether a field has at most one index key, which a query can read from the entity's row. */
export const isSingleValued = (field: ModelField) => !field.multi && !!field.kind.toIndexKey

/** Returns whether queries may use the index of a field. */
export const isIndexed = ({ index }: ModelField) => index?.state === 'ready'

/** Returns whether an index has to have the rows of every entity, also while queries do not use it. */
const isMaintained = ({ index }: ModelField) => index !== undefined && index.state !== 'removing'

/** Returns the index keys of a document. A field that is never indexed has a key only if it is single-valued. @throws 400 */
export function toIndexKeys(model: Model, doc: Record<string, unknown>): IndexKeys {
  const keys: IndexKeys = {}
  let listed = 0
  for (const { field, label, isSingle } of getLabeledFields(model)) {
    const value = doc[field.key]
    if (value === undefined) continue
    const { kind } = field
    if (isSingle) keys[label] = kind.toIndexKey!(value)
    else if (isNeverIndexed(field)) continue
    else if (kind.toIndexKey)
      listed += addKeys(keys, label, new Set((value as unknown[]).map((one) => kind.toIndexKey!(one))))
    else for (const [path, values] of collectParts(value)) listed += addKeys(keys, fieldLabel(field, path), values)
  }
  if (listed > MAX_INDEX_ROWS) throwTooManyValues(listed)
  return keys
}

type LabeledField = { field: ModelField; label: string; isSingle: boolean }
const labeledFields = new WeakMap<Model, LabeledField[]>()

function getLabeledFields(model: Model): LabeledField[] {
  const existing = labeledFields.get(model)
  if (existing) return existing
  const fields = model.fields.map((field) => ({ field, label: fieldLabel(field), isSingle: isSingleValued(field) }))
  labeledFields.set(model, fields)
  return fields
}

function addKeys(keys: IndexKeys, label: string, values: Set<string>) {
  keys[label] = [...values]
  return values.size
}

/** The indexes that an entity may have rows in. All fields count without `fields`. */
export type IndexSet = Partial<Pick<MaintainedIndexes, 'compound'>> & {
  fields?: Pick<ReadonlySet<number>, 'has' | 'size'>
}

/** Returns the rows that an entity with these keys and owners has in some indexes; without owners, not in compound ones. */
export function toIndexRows({ fields, compound = [] }: IndexSet, keys: IndexKeys, owners?: Owners): IndexRow[] {
  const rows = owners
    ? compound.map((index) => toCompoundRow(index, keys, owners)).filter((row) => row !== undefined)
    : []
  if (fields?.size === 0) return rows
  for (const label in keys) {
    const values = keys[label]!
    const dot = label.indexOf('.')
    const [number, path] = dot < 0 ? [label.slice(1), ''] : [label.slice(1, dot), label.slice(dot + 1)]
    if (fields && !fields.has(Number(number))) continue
    for (const value of typeof values === 'string' ? [values] : values) rows.push([Number(number), path, value])
  }
  return rows
}

/** Returns the row of an entity in a compound index, unless it lacks one of the values that the index leads by. */
function toCompoundRow(
  { number, equal, order }: CompoundParts & { number: number },
  keys: IndexKeys,
  owners: Owners,
): IndexRow | undefined {
  const values = equal.map((part) => (typeof part === 'number' ? keys[fieldLabel({ number: part })] : owners[part]))
  if (!values.every((value) => typeof value === 'string')) return
  const sorted = order === null ? '' : keys[fieldLabel({ number: order })]
  return [number, toCompoundPath(values, sorted === undefined), (sorted as string | undefined) ?? '']
}

const maintainedIndexes = new WeakMap<Model, Required<IndexSet>>()

/** Returns the indexes that the writers of a model maintain. */
export function getMaintainedIndexes(model: Model): Required<IndexSet> {
  const existing = maintainedIndexes.get(model)
  if (existing) return existing
  const indexes = {
    fields: new Set(model.fields.filter(isMaintained).map(({ number }) => number)),
    compound: model.compoundIndexes.filter(({ state }) => state !== 'removing'),
  }
  maintainedIndexes.set(model, indexes)
  return indexes
}

/** The maximum length of a path into an object, in characters. */
export const MAX_PATH_LENGTH = 256

/** Returns the index keys of the scalars in an object by their dotted paths, which lead through lists. */
function collectParts(value: unknown, path = '', collected = new Map<string, Set<string>>(), counter = { values: 0 }) {
  if (Array.isArray(value)) for (const one of value) collectParts(one, path, collected, counter)
  else if (value !== null && typeof value === 'object') {
    for (const [key, part] of Object.entries(value))
      if (key) collectParts(part, path ? `${path}.${key}` : key, collected, counter)
  } else if (value !== null && path) {
    if (path.length > MAX_PATH_LENGTH)
      badRequest({ path: '', message: `The path of a value is longer than ${MAX_PATH_LENGTH} characters.` })
    if (++counter.values > MAX_INDEX_ROWS) throwTooManyValues(counter.values)
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
