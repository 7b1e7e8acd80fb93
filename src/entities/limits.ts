import type { Model, ModelField } from '../blueprints/model'
import { type Caller, holdsOne, mayRead } from '../blueprints/rules'
import type { Limitation, PlanLimit } from '../blueprints/shapes'
import { Problem } from '../core/problem'
import type { Tx } from '../storage/port'
import { and, holds, indexWhere, isIndexed, type Part, part } from './conditions'
import { isIndexed as inIndex, type Keys, labelOf } from './keys'
import type { Condition } from './query'
import type { System } from './wire'

type Owner = Pick<System, 'user' | 'workspace'>

/** A limitation that also counts what is not there: `earlier` tells how many of a group. */
export type Tried = Limitation & { earlier?: (group: string) => number }

/**
 * Refuses (403 LIMIT_REACHED) what would be one too many of its group: those of the same scope, and of equal values. Of a
 * change only what moves an entity into another group counts. In the writing transaction, where nobody can come in between.
 */
export async function refuseExcess(
  tx: Tx,
  model: Model,
  { user, workspace }: Owner,
  keys: Keys,
  actor: Caller | undefined,
  old?: Keys,
) {
  for (const limitation of (model.limitations ?? []) as Tried[]) {
    if (!binds(limitation, actor)) continue
    const fields = fieldsOf(model, limitation)
    if (old && fields.every((field) => keys[labelOf(field)] === old[labelOf(field)])) continue
    const most = await mostOf(tx, limitation, { user, workspace })
    if (most === undefined) continue
    const left = most - (limitation.earlier?.(groupOf(model, limitation, { user, workspace }, keys)) ?? 0)
    const group = [part('e.blueprint = ?', model.key), ...owned(limitation, { user, workspace })]
    const count = left > 0 ? await countUpTo(tx, left, limitation, group, equal(fields, keys)) : 0
    if (count >= left) throw reached(model, limitation, most, fields, actor)
  }
}

const fieldsOf = (model: Model, { properties = [] }: Limitation) =>
  properties.flatMap((key) => model.field.get(key) ?? [])

/** A name of the group that an entity is counted with. */
export const groupOf = (model: Model, limitation: Limitation, owner: Owner, keys: Keys) =>
  JSON.stringify([owned(limitation, owner), fieldsOf(model, limitation).map((field) => keys[labelOf(field)] ?? null)])

/** Whom a limitation is about. Empty lists are about everybody, and none is about admins. */
function binds({ roles, workspaceLabels }: Limitation, actor: Caller | undefined) {
  if (actor?.privileged) return false
  if (roles?.length && !(actor && holdsOne(roles, actor.roles))) return false
  return !workspaceLabels?.length || (!!actor?.workspace && holdsOne(workspaceLabels, actor.workspace.labels))
}

/** A limit of what an owner has subscribed to, asked in the writing transaction; undefined where there is none. */
type PlanLimits = (tx: Tx, owner: Owner, limit: PlanLimit) => Promise<number | undefined>

let planLimit: PlanLimits = async (_tx, _owner, { otherwise = 0 }) => otherwise
/** Says who knows the limits of plans. */
export const plansAreLimitedBy = (limits: PlanLimits) => {
  planLimit = limits
}

/** The only place that knows where the number comes from. */
const mostOf = async (tx: Tx, { value }: Limitation, owner: Owner) =>
  typeof value === 'number' ? value : planLimit(tx, owner, value)

/** Whose entities are counted. Who is in no workspace counts their own outside of all; guests are one nobody. */
function owned({ scope }: Limitation, { user, workspace }: Owner): Part[] {
  const of = (column: string, id: string | null) =>
    id === null ? part(`${column} is null`) : part(`${column} = ?`, id)
  if (scope === 'tenant') return []
  if (scope === 'workspace' && workspace !== null) return [of('e.workspace', workspace)]
  return scope === 'user' ? [of('e."user"', user)] : [of('e.workspace', null), of('e."user"', user)]
}

/** Equal values of the fields; those that are missing are equal, too. */
const equal = (fields: ModelField[], keys: Keys) =>
  fields.map((field): Condition => {
    const [label, indexed] = [labelOf(field), inIndex(field)]
    const value = keys[label] as string | undefined
    const target = { at: 'field', field, path: '', label, single: true, indexed } as const
    return value === undefined ? { target, is: 'absent' } : { target, is: 'in', values: [value] }
  })

const FEW = 200 // rows of the index; rather these than all that somebody owns

/** How many there are, but no more than `most`: by the value that fewest have, or by whose they are. */
async function countUpTo(tx: Tx, most: number, { scope }: Limitation, group: Part[], conditions: Condition[]) {
  const count = async (from: string, where: Part, limit: number) => {
    const few = `select count(*) from (select 1 from ${from} where ${where.sql} limit ?) as few`
    return Number((await tx.ask(few, [...where.params, limit]))[0]![0])
  }
  let best: { rows: Part; size: number } | undefined
  for (const condition of conditions) {
    if (!isIndexed(condition)) continue
    const rows = indexWhere(condition)
    const size = conditions.length > 1 || scope !== 'tenant' ? await count('entity_index i', rows, FEW) : 0
    if (!best || size < best.size) best = { rows, size }
  }
  const where = [...group, ...conditions.map(holds)]
  if (!best || (best.size === FEW && scope !== 'tenant')) return count('entities e', and(where), most)
  return count('entity_index i join entities e on e.seq = i.entity', and([best.rows, ...where]), most)
}

function reached(model: Model, { scope }: Limitation, most: number, fields: ModelField[], actor: Caller | undefined) {
  const told = fields.filter((field) => mayRead(field, actor)).map(({ key }) => key)
  const whose = { user: 'each user', workspace: 'each workspace', tenant: 'all together' }[scope]
  const alike = told.length ? ` with the same ${told.join(', ')}` : ''
  return new Problem(
    403,
    'LIMIT_REACHED',
    `There may be ${most} entities of "${model.key}"${alike} for ${whose}, and there are. Remove one first.`,
    { details: { scope, properties: told, value: most } },
  )
}
