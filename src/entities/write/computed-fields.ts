import { FormulaError, Meter } from '../../blueprints/formulas/meter'
import type { Model, ModelField } from '../../blueprints/model'
import { type Caller, mayReadField } from '../../blueprints/permissions'
import { isStorable } from '../../core/body'
import { badRequest, type FieldError } from '../../core/problem'
import type { ComputedDoc, Doc } from '../store/doc'
import type { EntityHeader } from '../store/serializer'
import { evaluateInTurn } from './formula-evaluation'

/** The system properties of an entity that are known before it is written. */
export type EntityIdentity = Pick<EntityHeader, '_id' | 'identifier' | 'user' | 'workspace'>

/** Returns whether a property is computed by its blueprint, so that callers cannot set it. */
export const isComputed = ({ computed }: Model, key: string) => !!computed && Object.hasOwn(computed, key)

/**
 * Returns the document with its computed properties, evaluated in the order of the fields. A formula sees the
 * properties set by callers, those computed before it, and the known system properties. Evaluations are slow and take
 * turns with all other costly work, so they belong outside of a transaction; where they must happen inside one,
 * `atOnce` runs them without waiting.
 * @throws 400 naming each field whose formula fails or has an invalid result; 503 BUSY when too many are waiting
 */
export function computeFields(
  model: Model,
  draft: Doc,
  identity: EntityIdentity,
  actor: Caller | undefined,
  { atOnce = false } = {},
) {
  if (!model.formulas.length) return draft as ComputedDoc
  const evaluate: Evaluate = atOnce
    ? (work) => work()
    : (work) => evaluateInTurn({ tenant: model.tenant, caller: actor?.user || 'nobody' }, work)
  return evaluateFormulas(model, draft, identity, actor, evaluate)
}

type Evaluate = <T>(work: (pause?: () => Promise<void>) => Promise<T>) => Promise<T>

/** Returns the document without its computed properties, as formulas see it. */
export function withoutComputed({ formulas }: Model, draft: Doc): Doc {
  const doc = { ...draft }
  for (const { field } of formulas) delete doc[field.key]
  return doc
}

async function evaluateFormulas(
  model: Model,
  draft: Doc,
  { _id, identifier, user, workspace }: EntityIdentity,
  actor: Caller | undefined,
  evaluate: Evaluate,
) {
  const { formulas } = model
  const doc = withoutComputed(model, draft)
  const entity: Doc = { ...doc, _id, identifier, user, workspace }
  const [meter, flaws]: [Meter, FieldError[]] = [new Meter(), []]
  for (const { field, formula } of formulas)
    try {
      const result = await evaluate((pause) => {
        meter.pause = pause
        return formula.evaluate(entity, meter)
      })
      const value = toFieldValue(field, result)
      if (value === undefined) continue
      doc[field.key] = value
      entity[field.key] = value
    } catch (error) {
      if (!(error instanceof FormulaError)) throw error
      flaws.push(toFieldError(field, error, actor))
    }
  if (flaws.length) badRequest(...flaws.slice(0, 100))
  return doc as ComputedDoc
}

/** Returns the result of a formula as a value of the field. JSONata turns a list of one value into that value. */
function toFieldValue(field: ModelField, result: unknown) {
  if (result === undefined) {
    if (field.required) throw new FormulaError('it has no value but is required')
    return
  }
  const value = field.multi && !Array.isArray(result) ? [result] : result
  const [flaw] = field.validate(value)
  if (flaw) throw new FormulaError(`the result ${flaw.message}`)
  if (!isStorable(value)) throw new FormulaError('the result cannot be stored, because it is not valid text')
  return value
}

/** The error names the field only to callers who may read it. */
function toFieldError(field: ModelField, { message }: FormulaError, actor: Caller | undefined): FieldError {
  return mayReadField(field, actor)
    ? { path: `/${field.key}`, message: `${field.key} cannot be computed: ${message}.` }
    : { path: '', message: 'A property of this entity cannot be computed from the values sent.' }
}
