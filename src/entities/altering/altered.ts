import type { Alteration, Step } from '../../blueprints/alteration'
import type { Model, ModelField } from '../../blueprints/model'
import { type Caller, mayRead } from '../../blueprints/rules'
import { type Flaw, Problem } from '../../core/problem'
import { computed, type Known } from '../computed'
import { type Doc, isComputed } from '../document'
import { type IndexRow, type Keys, keysOf, rowsOf } from '../keys'

/** What entities have to become. */
export type Plan = { alteration: Alteration; next: Model }

/** Why an entity can't be what it has to become. */
export type Trouble = { field: string; code: string; message: string }

/** What an entity becomes: its document, and by what those fields are found whose index is built anew. */
export type Altered = { doc: Doc; keys: Keys; index: IndexRow[]; troubles: Trouble[] }

const ANYBODY: Caller = { user: '', roles: [], privileged: true, workspace: null }

/** Works out what becomes of an entity: within a write `atOnce`, else its formulas wait for their turn. */
export async function altered(
  plan: Plan,
  known: Known,
  before: Doc,
  when: { atOnce?: boolean } = {},
): Promise<Altered> {
  const { alteration, next } = plan
  const troubles: Trouble[] = []
  let doc = shaped(plan, before, troubles)
  const made: Altered = { doc, keys: {}, index: [], troubles }
  if (troubles.length) return made
  try {
    if (alteration.recomputes) doc = await computed(next, doc, known, ANYBODY, when)
    const keys = freshOnly(plan, keysOf(next, doc))
    return { doc, keys, index: rowsOf(next, keys), troubles }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    for (const { path, message } of error.more.details as Flaw[])
      troubles.push({ field: path.slice(1), code: path ? 'NOT_COMPUTABLE' : 'VALUES_DO_NOT_FIT', message })
    return made
  }
}

/** Of the texts of the index, those of fields whose index is built anew. */
export function freshOnly({ alteration, next }: Plan, keys: Keys): Keys {
  const numbers = new Set(next.fields.filter(({ key }) => alteration.fresh.has(key)).map(({ number }) => `f${number}`))
  return Object.fromEntries(Object.entries(keys).filter(([label]) => numbers.has(label.split('.', 1)[0]!)))
}

/** The document but for what formulas are to make of it. */
function shaped({ alteration, next }: Plan, before: Doc, troubles: Trouble[]): Doc {
  const doc: Doc = {}
  for (const [at, step] of alteration.steps.entries()) {
    if (alteration.recomputes && isComputed(next, step.key)) continue
    const value = valueFor(step, next.fields[at]!, before, troubles)
    if (value !== undefined) doc[step.key] = value
  }
  return doc
}

function valueFor({ key, from, list, fill, never, checked }: Step, field: ModelField, doc: Doc, troubles: Trouble[]) {
  const misfit = (message: string, code = 'VALUES_DO_NOT_FIT') => void troubles.push({ field: key, code, message })
  const before = from === undefined ? undefined : doc[from]
  const value = list === 'unwrap' && Array.isArray(before) && before.length < 2 ? before[0] : before
  if (value === undefined) {
    if (never === 'absent' || (field.required && before !== undefined))
      misfit(`"${key}" cannot be required without a default, because entities lack it.`, 'FIELD_NEEDS_DEFAULT')
    return structuredClone(fill)
  }
  if (never === 'present')
    return misfit(`"${key}" cannot point elsewhere while entities have values of it.`, 'FIELD_IN_USE')
  if (list === 'unwrap' && Array.isArray(value))
    return misfit(`"${key}" cannot be one value, because entities have several.`)
  const made = list === 'wrap' ? [value] : value
  const [flaw] = checked ? field.flaws(made) : []
  if (flaw) misfit(`Values of "${key}" do not fit: ${key}${flaw.path} ${flaw.message}.`)
  return made
}

/** What of a document that somebody writes would stand in the way of what is being prepared. */
export function misfits(plan: Plan, doc: Doc, actor: Caller | undefined): Flaw[] {
  const troubles: Trouble[] = []
  shaped(plan, doc, troubles)
  return troubles.map(({ field, message }) =>
    mayRead(plan.next.field.get(field)!, actor)
      ? { path: `/${field}`, message: `${message} This blueprint is being changed so.` }
      : { path: '', message: 'This blueprint is being changed, and what you sent would not fit any more.' },
  )
}
