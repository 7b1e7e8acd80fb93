import { FormulaError, Meter } from '../../blueprints/formulas/meter'
import type { Model, ModelField } from '../../blueprints/model'
import { type Caller, mayReadField } from '../../blueprints/permissions'
import { isStorable } from '../../core/body'
import { badRequest, type FieldError } from '../../core/problem'
import type { ComputedDoc, Doc } from '../store/doc'
import type { EntityHeader } from '../store/serializer'
import { evaluateInTurn } from './formula-evaluation'

/** What the system knows of an entity before it writes. */
export type EntityIdentity = Pick<EntityHeader, '_id' | 'identifier' | 'user' | 'workspace'>

/** Whether callers don't set a property, because its blueprint does. */
export const isComputed = ({ computed }: Model, key: string) => !!computed && Object.hasOwn(computed, key)

/**
 * Fills in the computed properties, one after the other in the order of the fields: a formula sees what callers set, what
 * was computed before it, and what the system knows before it writes. It takes its time, so it is no work for a write,
 * which, where it must be, does it `atOnce`; else evaluations take turns with all other costly work.
 * @throws 400 naming each field whose formula fails, or makes what doesn't fit; 503 BUSY for too many at a time
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

type Evaluate = <T>(work: () => Promise<T>) => Promise<T>

/** What formulas see of a document: all but what they have made of it before. */
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
      const value = toFieldValue(field, await evaluate(() => formula.evaluate(entity, meter)))
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

/** The value, if it is one of the field's. JSONata makes one value of a list of one. */
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

/** Who may not know of a field is not told its name. */
function toFieldError(field: ModelField, { message }: FormulaError, actor: Caller | undefined): FieldError {
  return mayReadField(field, actor)
    ? { path: `/${field.key}`, message: `${field.key} cannot be computed: ${message}.` }
    : { path: '', message: 'A property of this entity cannot be computed from the values sent.' }
}
