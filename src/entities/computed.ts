import { Meter, Unfit } from '../blueprints/formulas/meter'
import type { Model, ModelField } from '../blueprints/model'
import { type Caller, mayRead } from '../blueprints/rules'
import { isKeepable } from '../core/body'
import { type Flaw, invalid } from '../core/problem'
import type { Complete, Doc } from './document'
import { evaluateInTurn } from './evaluation'
import type { System } from './wire'

/** What the system knows of an entity before it writes. */
export type Known = Pick<System, '_id' | 'identifier' | 'user' | 'workspace'>

/**
 * Fills in the computed properties, one after the other in the order of the fields: a formula sees what callers set, what
 * was computed before it, and what the system knows before it writes. It takes its time, so it is no work for a write,
 * which, where it must be, does it `atOnce`; else evaluations take turns with all other costly work.
 * @throws 400 naming each field whose formula fails, or makes what doesn't fit; 503 BUSY for too many at a time
 */
export function computed(model: Model, draft: Doc, known: Known, actor: Caller | undefined, { atOnce = false } = {}) {
  if (!model.formulas.length) return draft as Complete
  const evaluate: Evaluate = atOnce
    ? (work) => work()
    : (work) => evaluateInTurn({ tenant: model.tenant, caller: actor?.user || 'nobody' }, work)
  return compute(model, draft, known, actor, evaluate)
}

type Evaluate = <T>(work: () => Promise<T>) => Promise<T>

/** What formulas see of a document: all but what they have made of it before. */
export function uncomputed({ formulas }: Model, draft: Doc): Doc {
  const doc = { ...draft }
  for (const { field } of formulas) delete doc[field.key]
  return doc
}

async function compute(
  model: Model,
  draft: Doc,
  { _id, identifier, user, workspace }: Known,
  actor: Caller | undefined,
  evaluate: Evaluate,
) {
  const { formulas } = model
  const doc = uncomputed(model, draft)
  const entity: Doc = { ...doc, _id, identifier, user, workspace }
  const [meter, flaws]: [Meter, Flaw[]] = [new Meter(), []]
  for (const { field, formula } of formulas)
    try {
      const value = fitted(field, await evaluate(() => formula.of(entity, meter)))
      if (value === undefined) continue
      doc[field.key] = value
      entity[field.key] = value
    } catch (error) {
      if (!(error instanceof Unfit)) throw error
      flaws.push(told(field, error, actor))
    }
  if (flaws.length) invalid(...flaws.slice(0, 100))
  return doc as Complete
}

/** The value, if it is one of the field's. JSONata makes one value of a list of one. */
function fitted(field: ModelField, made: unknown) {
  if (made === undefined) {
    if (field.required) throw new Unfit('there is no value, and it is required')
    return
  }
  const value = field.multi && !Array.isArray(made) ? [made] : made
  const [flaw] = field.flaws(value)
  if (flaw) throw new Unfit(`what comes out ${flaw.message}`)
  if (!isKeepable(value)) throw new Unfit('what comes out is nothing that can be kept, such as half a character')
  return value
}

/** Who may not know of a field is not told its name. */
function told(field: ModelField, { message }: Unfit, actor: Caller | undefined): Flaw {
  return mayRead(field, actor)
    ? { path: `/${field.key}`, message: `${field.key} cannot be computed: ${message}.` }
    : { path: '', message: 'A property of this entity cannot be computed from what you sent.' }
}
