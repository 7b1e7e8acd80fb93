import { matchesAny } from '../../blueprints/access-rules'
import type { Model, ModelField } from '../../blueprints/model'
import { type Caller, mayReadField } from '../../blueprints/permissions'
import type { Limitation, PlanLimit } from '../../blueprints/shapes'
import { slot } from '../../core/extension'
import { Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { conditionSql, indexWhere, isIndexCondition } from '../query/sql-conditions'
import { type Condition, toFieldTarget } from '../query/target'
import { fieldLabel, type IndexKeys } from '../store/index-keys'
import type { EntityHeader } from '../store/serializer'
import { and, fragment, type SqlFragment } from '../store/sql-fragments'

type EntityOwner = Pick<EntityHeader, 'user' | 'workspace'>

/** A limitation of a dry run: `countEarlier` returns how many entities of a group earlier lines would have created. */
export type TrialLimitation = Limitation & { countEarlier?: (group: string) => number }

/**
 * Checks that an entity does not exceed the limit of its group: the entities of the same scope with equal values. An
 * update counts only if it moves the entity into another group. Runs in the writing transaction, so that no other write
 * can come in between. @throws 403 LIMIT_REACHED
 */
export async function assertWithinLimits(
  tx: Tx,
  model: Model,
  { user, workspace }: EntityOwner,
  keys: IndexKeys,
  actor: Caller | undefined,
  old?: IndexKeys,
) {
  for (const limitation of (model.limitations ?? []) as TrialLimitation[]) {
    if (!appliesTo(limitation, actor)) continue
    const fields = limitedFields(model, limitation)
    if (old && fields.every((field) => keys[fieldLabel(field)] === old[fieldLabel(field)])) continue
    const maximum = await getMaximum(tx, limitation, { user, workspace })
    if (maximum === undefined) continue
    const remaining =
      maximum - (limitation.countEarlier?.(toGroupKey(model, limitation, { user, workspace }, keys)) ?? 0)
    const group = [fragment('e.blueprint = ?', model.code), ...ownerSql(limitation, { user, workspace })]
    const count =
      remaining > 0 ? await countUpTo(tx, remaining, limitation, group, equalityConditions(model, fields, keys)) : 0
    if (count >= remaining) throw limitReached(model, limitation, maximum, fields, actor)
  }
}

const limitedFields = (model: Model, { properties = [] }: Limitation) =>
  properties.flatMap((key) => model.field.get(key) ?? [])

/** Returns a key of the group that an entity is counted in. */
export const toGroupKey = (model: Model, limitation: Limitation, owner: EntityOwner, keys: IndexKeys) =>
  JSON.stringify([
    ownerSql(limitation, owner),
    limitedFields(model, limitation).map((field) => keys[fieldLabel(field)] ?? null),
  ])

/** Empty lists apply to everybody; privileged callers have no limits. */
function appliesTo({ roles, workspaceLabels }: Limitation, actor: Caller | undefined) {
  if (actor?.privileged) return false
  if (roles?.length && !(actor && matchesAny(roles, actor.roles))) return false
  return !workspaceLabels?.length || (!!actor?.workspace && matchesAny(workspaceLabels, actor.workspace.labels))
}

/** Returns a limit of an owner's plan, read in the writing transaction; undefined when there is none. */
type PlanLimitLookup = (tx: Tx, owner: EntityOwner, limit: PlanLimit) => Promise<number | undefined>

export const planLimits = slot<PlanLimitLookup>('plan limits')

/** Returns the maximum, which is a fixed number or comes from the owner's plan. */
const getMaximum = async (tx: Tx, { value }: Limitation, owner: EntityOwner) =>
  typeof value === 'number' ? value : planLimits()(tx, owner, value)

/**
 * Returns the SQL for the counted owner. Without a workspace, users count their own outside of any; guests count as
 * one.
 */
function ownerSql({ scope }: Limitation, { user, workspace }: EntityOwner): SqlFragment[] {
  const of = (column: string, id: string | null) =>
    id === null ? fragment(`${column} is null`) : fragment(`${column} = ?`, id)
  if (scope === 'tenant') return []
  if (scope === 'workspace' && workspace !== null) return [of('e.workspace', workspace)]
  return scope === 'user' ? [of('e."user"', user)] : [of('e.workspace', null), of('e."user"', user)]
}

/** Returns the conditions for equal values of the fields; missing values are equal to each other. */
const equalityConditions = (model: Model, fields: ModelField[], keys: IndexKeys) =>
  fields.map((field): Condition => {
    const target = toFieldTarget(model, field)
    const value = keys[target.label] as string | undefined
    return value === undefined ? { target, is: 'absent' } : { target, is: 'in', values: [value] }
  })

const MAX_COUNTED_ROWS = 200 // index rows of a value; with more, the owner's entities are counted instead

/** Returns the size of a group, at most `maximum`, counted by the value with the fewest rows or by the owner. */
async function countUpTo(
  tx: Tx,
  maximum: number,
  { scope }: Limitation,
  group: SqlFragment[],
  conditions: Condition[],
) {
  const count = async (from: string, where: SqlFragment, limit: number) => {
    const select = `select count(*) from (select 1 from ${from} where ${where.sql} limit ?) as few`
    return Number((await tx.query(select, [...where.params, limit]))[0]![0])
  }
  let fewest: { rows: SqlFragment; size: number } | undefined
  for (const condition of conditions) {
    if (!isIndexCondition(condition)) continue
    const rows = indexWhere(condition)
    const size = conditions.length > 1 || scope !== 'tenant' ? await count('entity_index i', rows, MAX_COUNTED_ROWS) : 0
    if (!fewest || size < fewest.size) fewest = { rows, size }
  }
  const where = [...group, ...conditions.map(conditionSql)]
  if (!fewest || (fewest.size === MAX_COUNTED_ROWS && scope !== 'tenant'))
    return count('entities e', and(where), maximum)
  return count('entity_index i join entities e on e.seq = i.entity', and([fewest.rows, ...where]), maximum)
}

function limitReached(
  model: Model,
  { scope }: Limitation,
  maximum: number,
  fields: ModelField[],
  actor: Caller | undefined,
) {
  const propertyNames = fields.filter((field) => mayReadField(field, actor)).map(({ key }) => key)
  const user = actor ? 'each user' : 'all guests together'
  const per = { user, workspace: 'each workspace', tenant: 'all together' }[scope]
  const suffix = propertyNames.length ? ` with the same ${propertyNames.join(', ')}` : ''
  return new Problem(
    403,
    'LIMIT_REACHED',
    `Limit reached: at most ${maximum} entities of "${model.key}"${suffix} for ${per}. Delete one first.`,
    { details: { scope, properties: propertyNames, value: maximum } },
  )
}
