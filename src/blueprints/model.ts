import type { ErrorObject } from 'ajv'
import { compileMatcher, compileSchema } from '../core/json-schema/validator'
import type { FieldError } from '../core/problem'
import { type CompoundIndex, type FieldIndex, isNeverIndexed } from './field-indexes'
import { type FieldTypeName, typeOfField } from './fields'
import { type FieldType, toBoundValue } from './fields/field-type'
import type { Formula } from './formulas/formula'
import type { HistoryFields } from './history'
import type { SchemaDiff } from './schema-diff'
import type { Definition, Field } from './shapes'

/** A compiled field. */
export type ModelField = Field & {
  /** The name of the field's type, as definitions have it. */
  type: FieldTypeName
  /** The number of the field in the index. */
  number: number
  /** The index of the field, if it has one. */
  index: FieldIndex | undefined
  /** The field's type itself. */
  kind: FieldType
  /** Returns the errors of a value (never null or undefined): a path in it, and the end of a sentence. */
  validate(value: unknown): FieldError[]
}

/** A compiled blueprint. */
export type Model = Omit<Definition, 'fields'> & {
  _id: string
  tenant: string
  key: string
  name: string
  description: string
  version: number
  created: string
  updated: string
  fields: ModelField[]
  field: Map<string, ModelField>
  /** The versions of the index keys of fields, by their numbers. */
  indexKeys: Map<number, number>
  compoundIndexes: CompoundIndex[]
  /** The formulas of computed fields, in the order of the fields. */
  formulas: { field: ModelField; formula: Formula }[]
  /** The fields whose values can be files of this server. */
  fileFields: ModelField[]
  /** Whether a field has readRoles. */
  guarded: boolean
  /** What its entities have in the place of its key. */
  code: string
  /** The number of the alteration that is in force. */
  form: number
  /** Counts the changes of the fields' indexes. */
  indexing: number
  /** The number of the history of its entities, if it has one. */
  historyNumber: number | null
  historyFields: HistoryFields | null
  /** The latest alteration, while it is in progress or after it has failed. */
  alteration?: AlterationState
}

/** An alteration of entities; until it is in force, with the future model. */
export type AlterationState = PendingModel | { form: number; state: 'cleaning' | 'failed' }
export type PendingModel = { form: number; state: 'preparing'; diff: SchemaDiff; next: Model }

/** Returns the alteration that is being prepared, if any. */
export const pendingModelOf = ({ alteration }: Model): PendingModel | undefined =>
  alteration?.state === 'preparing' ? alteration : undefined

/** Returns whether entities may contain data that is not in force yet, or no longer. */
export const isAltering = ({ alteration }: Model) => !!alteration && alteration.state !== 'failed'

/** Compiles a field. @throws the error of Ajv or RE2 for an invalid schema or pattern */
export async function compileField(
  field: Field,
  number: number,
  index?: FieldIndex,
  indexKeys?: number,
): Promise<ModelField> {
  const kind = typeOfField(field, indexKeys)
  const matches = field.pattern === undefined ? undefined : compileMatcher(field.pattern)
  const choices = field.enum && new Set(field.enum.map((choice) => JSON.stringify(choice)))
  const matchesSchema = field.schema && (await compileSchema(field.schema))

  function checkBounds(value: unknown, kind: BoundedType): string | undefined {
    const { min, max } = field
    if (min === undefined && max === undefined) return
    if (kind.bounds === 'value' && kind.toIndexKey) {
      const key = kind.toIndexKey(value)
      if (min !== undefined && key < kind.toIndexKey(toBoundValue(kind, min))) return `must be at least ${min}`
      if (max !== undefined && key > kind.toIndexKey(toBoundValue(kind, max))) return `must be at most ${max}`
    } else if (kind.bounds === 'length') {
      const length = Array.isArray(value) ? value.length : [...(value as string)].length
      const things = Array.isArray(value) ? 'values' : 'characters'
      if (min !== undefined && length < Number(min)) return `must have at least ${min} ${things}`
      if (max !== undefined && length > Number(max)) return `must have at most ${max} ${things}`
    }
  }

  function validateValue(value: unknown, path: string): FieldError[] {
    const violation =
      kind.check(value) ??
      (kind.toIndexKey || countParts(value) <= MAX_OBJECT_PARTS
        ? undefined
        : `must have at most ${MAX_OBJECT_PARTS} parts`)
    if (violation) return [{ path, message: violation }]
    const errors: FieldError[] = []
    if (choices && !choices.has(JSON.stringify(value)))
      errors.push({ path, message: `must be one of ${formatChoices(field.enum)}` })
    if (matches && !matches(value as string)) errors.push({ path, message: `must match the pattern ${field.pattern}` })
    const bound = field.multi ? undefined : checkBounds(value, kind)
    if (bound) errors.push({ path, message: bound })
    if (matchesSchema && !matchesSchema(value))
      for (const error of matchesSchema.errors ?? [])
        errors.push({ path: path + errorPath(error), message: error.message ?? 'is invalid' })
    return errors
  }

  function validate(value: unknown) {
    if (!field.multi) return validateValue(value, '')
    if (!Array.isArray(value)) return [{ path: '', message: 'must be a list' }]
    if (value.length > MAX_LIST_VALUES) return [{ path: '', message: `must have at most ${MAX_LIST_VALUES} values` }]
    const bound = checkBounds(value, LIST_BOUNDS)
    const errors: FieldError[] = bound ? [{ path: '', message: bound }] : []
    for (const [index, part] of value.entries()) {
      if (errors.length >= MAX_ERRORS_PER_VALUE) break
      errors.push(...validateValue(part, `/${index}`))
    }
    return errors
  }
  return { ...field, number, index: isNeverIndexed(field) ? undefined : index, kind, validate }
}

const MAX_OBJECT_PARTS = 10_000 // per object; validation takes time in proportion to these times the size of the schema

function countParts(value: unknown): number {
  if (value === null || typeof value !== 'object') return 1
  let size = 1
  for (const part of Object.values(value)) size += countParts(part)
  return size
}

const MAX_LIST_VALUES = 2_000
const MAX_ERRORS_PER_VALUE = 100

const formatChoices = (choices: unknown[] = []) => {
  const text = JSON.stringify(choices).slice(1, -1)
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}

type BoundedType = Pick<FieldType, 'bounds' | 'toIndexKey' | 'parseBound'>
const LIST_BOUNDS: BoundedType = { bounds: 'length' }

const errorPath = ({ instancePath, keyword, params }: ErrorObject) =>
  keyword === 'required' ? `${instancePath}/${params.missingProperty}` : instancePath
