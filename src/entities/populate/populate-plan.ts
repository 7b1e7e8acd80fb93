import type { Actor } from '../../accounts/actors'
import type { PublicCtx } from '../../accounts/guard'
import { getModel } from '../../blueprints/blueprints'
import { isReserved } from '../../blueprints/definition-validation'
import type { Model } from '../../blueprints/model'
import { mayReadField, type RowScope, rowScopeOf } from '../../blueprints/permissions'
import type { Scope } from '../../blueprints/shapes'
import { badRequest, type FieldError, Problem } from '../../core/problem'

/** What a query asks to be shown of related entities: paths of relations, and sets of those that point here. */
export type PopulateOptions = { populate: true | string[][]; sets: ReverseRequest[] }
type ReverseRequest = { key: string; blueprint: string; scope: Scope }

/** Entities of a blueprint that the caller reaches, with what is put in the place of their references. */
export type ReadableBlueprint = { model: Model; rowScope: RowScope; joins: Join[] }
export type OwnerField = 'user' | 'workspace'
export type Join = { key: string; to: ReadableBlueprint } | { key: OwnerField; to: 'owner' }

/** Those of another blueprint that point here by these fields, of those in reach such as are within the scope. */
export type ReverseRelation = { key: string; fields: number[]; from?: ReadableBlueprint; scope: RowScope }

export type PopulatePlan = { model: Model; joins: Join[]; sets: ReverseRelation[] }

const MAX_DEPTH = 3
const MAX_RELATIONS = 30
const MAX_REVERSE_RELATIONS = 10
const OWNER_FIELDS: readonly string[] = ['user', 'workspace'] satisfies OwnerField[]
const SCOPES: readonly string[] = ['user', 'workspace', 'tenant'] satisfies Scope[]

/** Reads `$populate` and `$outerPopulate`; what needs no other blueprint is checked. */
export function parsePopulate(
  model: Model,
  actor: Actor | undefined,
  options: Map<string, string>,
  addError: (path: string, message: string) => void,
): PopulateOptions | undefined {
  const related = { populate: parsePaths(), sets: parseReverse() }
  return related.populate === true || related.populate.length || related.sets.length ? related : undefined

  function parsePaths(): true | string[][] {
    const text = options.get('$populate') ?? 'false'
    if (/^(true|1)$/.test(text)) return true
    if (/^(false|0)$/.test(text)) return []
    const paths = splitNames(text).map((path) => path.split('.'))
    for (const path of paths)
      if (path.length > MAX_DEPTH)
        addError('$populate', `"${path.join('.')}" is nested more than ${MAX_DEPTH} relations deep.`)
    return paths
  }

  function parseReverse() {
    const sets: ReverseRequest[] = []
    for (const text of splitNames(options.get('$outerPopulate') ?? '')) {
      const [, key, blueprint, scope] = /^([a-zA-Z][a-zA-Z0-9_]{0,62}):([^:]+):(\w+)$/.exec(text) ?? []
      const field = key && model.field.get(key)
      if (!key || !blueprint || !scope || !SCOPES.includes(scope))
        addError(
          '$outerPopulate',
          `"${text}" must have the form name:blueprint:scope, where scope is user, workspace or tenant.`,
        )
      else if (isReserved(key) || (field && mayReadField(field, actor)))
        addError('$outerPopulate', `"${key}" is already a property of the entity. Choose another name.`)
      else if (sets.some((set) => set.key === key)) addError('$outerPopulate', `"${key}" is given twice.`)
      else sets.push({ key, blueprint, scope: scope as Scope })
    }
    if (sets.length > MAX_REVERSE_RELATIONS)
      addError('$outerPopulate', `At most ${MAX_REVERSE_RELATIONS} sets are allowed.`)
    return sets
  }
}

const splitNames = (text: string) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)

/** Relations with the relations that are asked for of what they lead to. */
type RelationTree = Map<string, RelationTree>

/**
 * What that means for a caller. Where they may not look, or nothing is any more, references stay what they are, and sets
 * are empty. @throws 400 for relations that do not exist, or are hidden
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
        if (to) joins.push({ key, to: { ...to, joins: await resolveJoins(to.model, below) } })
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

  /** Undefined when nothing of it may be read. */
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
