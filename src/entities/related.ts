import type { Actor } from '../accounts/actors'
import type { OpenCtx } from '../accounts/guard'
import { modelOf } from '../blueprints/blueprints'
import { isReserved } from '../blueprints/definition'
import type { Model } from '../blueprints/model'
import { mayRead, type Reach, reachOf } from '../blueprints/rules'
import type { Scope } from '../blueprints/shapes'
import { type Flaw, invalid, Problem } from '../core/problem'

/** What a query asks to be shown of related entities: paths of relations, and sets of those that point here. */
export type Related = { populate: true | string[][]; sets: Asked[] }
type Asked = { key: string; blueprint: string; scope: Scope }

/** Entities of a blueprint that the caller reaches, with what is put in the place of their references. */
export type Readable = { model: Model; reach: Reach; joins: Join[] }
export type Owner = 'user' | 'workspace'
export type Join = { key: string; to: Readable } | { key: Owner; to: 'owner' }

/** Those of another blueprint that point here by these fields, of those in reach such as are within the scope. */
export type OuterSet = { key: string; fields: number[]; from?: Readable; scope: Reach }

export type Plan = { model: Model; joins: Join[]; sets: OuterSet[] }

const DEPTH = 3
const RELATIONS = 30
const SETS = 10
const OWNERS: readonly string[] = ['user', 'workspace'] satisfies Owner[]
const SCOPES: readonly string[] = ['user', 'workspace', 'tenant'] satisfies Scope[]

/** Reads `$populate` and `$outerPopulate`; what needs no other blueprint is checked. */
export function readRelated(
  model: Model,
  actor: Actor | undefined,
  options: Map<string, string>,
  refuse: (path: string, message: string) => void,
): Related | undefined {
  const related = { populate: readPopulate(), sets: readSets() }
  return related.populate === true || related.populate.length || related.sets.length ? related : undefined

  function readPopulate(): true | string[][] {
    const text = options.get('$populate') ?? 'false'
    if (/^(true|1)$/.test(text)) return true
    if (/^(false|0)$/.test(text)) return []
    const paths = parts(text).map((path) => path.split('.'))
    for (const path of paths)
      if (path.length > DEPTH) refuse('$populate', `"${path.join('.')}" is deeper than ${DEPTH} relations.`)
    return paths
  }

  function readSets() {
    const sets: Asked[] = []
    for (const text of parts(options.get('$outerPopulate') ?? '')) {
      const [, key, blueprint, scope] = /^([a-zA-Z][a-zA-Z0-9_]{0,62}):([^:]+):(\w+)$/.exec(text) ?? []
      const field = key && model.field.get(key)
      if (!key || !blueprint || !scope || !SCOPES.includes(scope))
        refuse('$outerPopulate', `"${text}" is not of the form name:blueprint:user, :workspace or :tenant.`)
      else if (isReserved(key) || (field && mayRead(field, actor)))
        refuse('$outerPopulate', `"${key}" is a name of the entity's own. Choose another.`)
      else if (sets.some((set) => set.key === key)) refuse('$outerPopulate', `There are two sets "${key}".`)
      else sets.push({ key, blueprint, scope: scope as Scope })
    }
    if (sets.length > SETS) refuse('$outerPopulate', `Ask for at most ${SETS} sets.`)
    return sets
  }
}

const parts = (text: string) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)

/** Relations with the relations that are asked for of what they lead to. */
type Tree = Map<string, Tree>

/**
 * What that means for a caller. Where they may not look, or nothing is any more, references stay what they are, and sets
 * are empty. @throws 400 for relations that do not exist, or are hidden
 */
export async function planOf(
  ctx: OpenCtx,
  model: Model,
  { populate, sets }: Related,
  select: string[] | undefined,
): Promise<Plan> {
  const { actor } = ctx
  const flaws: Flaw[] = []
  const refuse = (path: string, message: string) => void flaws.push({ path, message })
  let relations = 0

  async function joinsOf(model: Model, tree: Tree): Promise<Join[]> {
    const joins: Join[] = []
    for (const [key, below] of tree) {
      const field = model.field.get(key)
      if (OWNERS.includes(key) && !below.size) joins.push({ key: key as Owner, to: 'owner' })
      else if (!field?.target || !mayRead(field, actor))
        refuse(
          '$populate',
          `The blueprint "${model.key}" has no relation "${key}"${below.size ? ' to go on from' : ''}.`,
        )
      else {
        if (++relations > RELATIONS) invalid({ path: '$populate', message: `Name at most ${RELATIONS} relations.` })
        const to = await readable(field.target)
        if (to) joins.push({ key, to: { ...to, joins: await joinsOf(to.model, below) } })
      }
    }
    return joins
  }

  async function outerOf({ key, blueprint, scope }: Asked): Promise<OuterSet> {
    const from = await readable(blueprint, () => refuse('$outerPopulate', `There is no blueprint "${blueprint}".`))
    const pointing = from?.model.fields.filter((field) => field.target === model.key && mayRead(field, actor)) ?? []
    if (from && !pointing.length)
      refuse('$outerPopulate', `The blueprint "${blueprint}" has no relation to "${model.key}".`)
    return { key, fields: pointing.map(({ number }) => number), from, scope: reachOfScope(scope, actor) }
  }

  /** Undefined when nothing of it may be read. */
  async function readable(key: string, unknown = () => {}): Promise<Readable | undefined> {
    const model = await modelOrNone(ctx, key)
    if (!model) unknown()
    const reach = model && reachOf(model, 'read', actor)
    return reach && { model, reach, joins: [] }
  }

  const tree = populate === true ? everything(model, actor) : treeOf(populate)
  const joins = await joinsOf(model, tree)
  const outer: OuterSet[] = []
  for (const set of sets) outer.push(await outerOf(set))
  if (flaws.length) invalid(...flaws.slice(0, 100))
  const isShown = ({ key }: Join) =>
    !select || select.includes(key) || (select.includes('metadata') && model.field.has(key))
  return { model, joins: joins.filter(isShown), sets: outer }
}

const everything = (model: Model, actor: Actor | undefined): Tree =>
  new Map(
    [...model.fields.filter((field) => field.target && mayRead(field, actor)).map(({ key }) => key), ...OWNERS].map(
      (key) => [key, new Map()],
    ),
  )

function treeOf(paths: string[][]): Tree {
  const tree: Tree = new Map()
  for (const path of paths) {
    let at = tree
    for (const key of path) {
      const below: Tree = at.get(key) ?? new Map()
      at.set(key, below)
      at = below
    }
  }
  return tree
}

const reachOfScope = (scope: Scope, actor: Actor | undefined): Reach =>
  scope === 'tenant'
    ? { all: true }
    : { all: false, ...(scope === 'user' ? { user: actor?.user } : { workspace: actor?.workspace?._id }) }

async function modelOrNone(ctx: OpenCtx, key: string) {
  try {
    return await modelOf(ctx, key)
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return
    throw error
  }
}
