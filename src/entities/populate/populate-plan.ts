import type { Actor } from '../../accounts/actors'
import type { PublicCtx } from '../../accounts/context'
import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { mayReadField, type RowScope, rowScopeOf } from '../../blueprints/permissions'
import type { Scope } from '../../blueprints/shapes'
import { badRequest, type FieldError, Problem } from '../../core/problem'
import { requestCache } from '../query/cached-reads'
import type { PopulateOptions, ReverseRequest } from '../query/populate-options'

/** A blueprint that the caller may read, the rows they may read, and the joins that replace references. */
export type ReadableBlueprint = { model: Model; rowScope: RowScope; joins: Join[] }
export type OwnerField = 'user' | 'workspace'
export type Join = { key: string; to: ReadableBlueprint } | { key: OwnerField; to: 'owner' }

/** The entities of blueprint `from` that refer to the populated entity by these fields, within the given scope. */
export type ReverseRelation = { key: string; fields: number[]; from?: ReadableBlueprint; scope: RowScope }

export type PopulatePlan = { model: Model; joins: Join[]; sets: ReverseRelation[] }

const MAX_RELATIONS = 30
const OWNER_FIELDS: readonly string[] = ['user', 'workspace'] satisfies OwnerField[]
/** The requested relations, each with the relations to populate in its target. */
type RelationTree = Map<string, RelationTree>

/**
 * Resolves populate options for a caller. Where the caller may not read the target, or the target no longer exists,
 * references stay identifiers and sets are empty. @throws 400 for relations that do not exist or are hidden
 */
export async function createPopulatePlan(
  ctx: PublicCtx,
  model: Model,
  { populate, sets }: PopulateOptions,
  select: string[] | undefined,
): Promise<PopulatePlan> {
  const { actor } = ctx
  const flaws: FieldError[] = []
  const addError = (path: string, message: string) => void flaws.push({ path, message })
  let relations = 0

  async function resolveJoins(model: Model, tree: RelationTree): Promise<Join[]> {
    const joins: Join[] = []
    for (const [key, below] of tree) {
      const field = model.field.get(key)
      if (OWNER_FIELDS.includes(key) && !below.size) joins.push({ key: key as OwnerField, to: 'owner' })
      else if (!field?.target || !mayReadField(field, actor))
        addError(
          '$populate',
          `The blueprint "${model.key}" has no relation "${key}"${below.size ? ' to go on from' : ''}.`,
        )
      else {
        if (++relations > MAX_RELATIONS)
          badRequest({ path: '$populate', message: `At most ${MAX_RELATIONS} relations are allowed.` })
        const to = await resolveReadable(field.target)
        if (!to) continue
        requestCache(ctx, to.model)
        joins.push({ key, to: { ...to, joins: await resolveJoins(to.model, below) } })
      }
    }
    return joins
  }

  async function resolveReverse({ key, blueprint, scope }: ReverseRequest): Promise<ReverseRelation> {
    const from = await resolveReadable(blueprint, () =>
      addError('$outerPopulate', `There is no blueprint "${blueprint}".`),
    )
    const pointing =
      from?.model.fields.filter((field) => field.target === model.key && mayReadField(field, actor)) ?? []
    if (from && !pointing.length)
      addError('$outerPopulate', `The blueprint "${blueprint}" has no relation to "${model.key}".`)
    return { key, fields: pointing.map(({ number }) => number), from, scope: toRowScope(scope, actor) }
  }

  /** Returns undefined when the caller may read nothing of the blueprint. */
  async function resolveReadable(key: string, onUnknown = () => {}): Promise<ReadableBlueprint | undefined> {
    const model = await findModel(ctx, key)
    if (!model) onUnknown()
    const rowScope = model && rowScopeOf(model, 'read', actor)
    return rowScope && { model, rowScope, joins: [] }
  }

  const tree = populate === true ? fullTree(model, actor) : toTree(populate)
  const joins = await resolveJoins(model, tree)
  const outer: ReverseRelation[] = []
  for (const set of sets) outer.push(await resolveReverse(set))
  if (flaws.length) badRequest(...flaws.slice(0, 100))
  const isSelected = ({ key }: Join) =>
    !select || select.includes(key) || (select.includes('metadata') && model.field.has(key))
  return { model, joins: joins.filter(isSelected), sets: outer }
}

const fullTree = (model: Model, actor: Actor | undefined): RelationTree =>
  new Map(
    [
      ...model.fields.filter((field) => field.target && mayReadField(field, actor)).map(({ key }) => key),
      ...OWNER_FIELDS,
    ].map((key) => [key, new Map()]),
  )

function toTree(paths: string[][]): RelationTree {
  const tree: RelationTree = new Map()
  for (const path of paths) {
    let at = tree
    for (const key of path) {
      const below: RelationTree = at.get(key) ?? new Map()
      at.set(key, below)
      at = below
    }
  }
  return tree
}

const toRowScope = (scope: Scope, actor: Actor | undefined): RowScope =>
  scope === 'tenant'
    ? { all: true }
    : { all: false, ...(scope === 'user' ? { user: actor?.user } : { workspace: actor?.workspace?._id }) }

async function findModel(ctx: PublicCtx, key: string) {
  try {
    return await getModel(ctx, key)
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return
    throw error
  }
}
