import { isFilePath } from '../../blueprints/file-fields'
import type { Model, ModelField } from '../../blueprints/model'
import { type Caller, mayReadField } from '../../blueprints/permissions'
import type { FieldMapping, SchemaDiff } from '../../blueprints/schema-diff'
import type { FieldError } from '../../core/problem'
import type { Doc } from '../store/doc'
import { isComputed } from './computed-fields'

/** An alteration: the differences, and the new model. */
export type AlterationPlan = { diff: SchemaDiff; next: Model }

/** Why an entity cannot be converted to the new model. */
export type TransformError = { field: string; code: string; message: string }

/** Returns the document under the new model, without properties that formulas will compute, and collects errors. */
export function toPendingDocument({ diff, next }: AlterationPlan, before: Doc, errors: TransformError[]): Doc {
  const doc: Doc = {}
  for (const [at, step] of diff.steps.entries()) {
    if (diff.recomputes && isComputed(next, step.key)) continue
    const value = mapValue(step, next.fields[at]!, before, errors)
    if (value !== undefined) doc[step.key] = value
  }
  return doc
}

function mapValue(
  { key, from, list, fill, blockedWhen, revalidate, beginsToNameFiles }: FieldMapping,
  field: ModelField,
  doc: Doc,
  errors: TransformError[],
) {
  const addError = (message: string, code = 'VALUES_DO_NOT_FIT') => void errors.push({ field: key, code, message })
  const before = from === undefined ? undefined : doc[from]
  const value = list === 'unwrap' && Array.isArray(before) && before.length < 2 ? before[0] : before
  if (value === undefined) {
    if (blockedWhen === 'absent' || (field.required && before !== undefined))
      addError(`"${key}" cannot be required without a default, because entities lack it.`, 'FIELD_NEEDS_DEFAULT')
    return structuredClone(fill)
  }
  if (blockedWhen === 'present')
    return addError(`The target of "${key}" cannot be changed while entities have values for it.`, 'FIELD_IN_USE')
  if (list === 'unwrap' && Array.isArray(value))
    return addError(`"${key}" cannot be single-valued, because entities have several values.`)
  if (beginsToNameFiles && [value].flat().some(isFilePath))
    return addError(`Values of "${key}" name files of this server, which was not checked. Clear them first.`)
  const mapped = list === 'wrap' ? [value] : value
  const [flaw] = revalidate ? field.validate(mapped) : []
  if (flaw) addError(`Existing values of "${key}" are invalid: ${key}${flaw.path} ${flaw.message}.`)
  return mapped
}

/** Returns the errors of a written document that would block the alteration in preparation. */
export function findPendingErrors(plan: AlterationPlan, doc: Doc, actor: Caller | undefined): FieldError[] {
  const errors: TransformError[] = []
  toPendingDocument(plan, doc, errors)
  return errors.map(({ field, message }) =>
    mayReadField(plan.next.field.get(field)!, actor)
      ? { path: `/${field}`, message: `${message} A schema change is in progress.` }
      : { path: '', message: 'A schema change is in progress, and this value is invalid under the new schema.' },
  )
}
