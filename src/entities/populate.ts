import type { Actor } from '../accounts/actors'
import { cardsOf } from '../accounts/users'
import { workspaceCardsOf } from '../accounts/workspaces/workspaces'
import type { Db } from '../storage/port'
import { inPortions, padded, within } from './conditions'
import { pointingTo, read } from './joins'
import type { Join, OuterSet, Owner, Plan, Readable } from './related'
import { type Entity, FLAT, type Form, Made, PAGE, parsed, writer } from './wire'

type Asking = { db: Db; actor?: Actor }

/** What stands for an owner, by id. */
const owners: Record<Owner, (db: Db, ids: string[]) => Promise<Map<string, object>>> = {
  user: cardsOf,
  workspace: workspaceCardsOf,
}

const TURN = 1 << 16 // characters, after which others get theirs

/** The JSON of an entity with what is to be in the place of its references. */
export async function populatedOne(ctx: Asking, plan: Plan, form: Form, shown: string): Promise<string> {
  return (await populated(ctx, plan, form, [shown])).entities
}

type Page = { entities: string; shown: number; more: boolean }

/** A page of such; it may end before the one that is read. */
export async function populatedPage(
  ctx: Asking,
  plan: Plan,
  form: Form,
  readPage: (note: (shown: string) => string) => Promise<Page>,
): Promise<Page> {
  const texts: string[] = []
  const { more } = await readPage((text) => {
    texts.push(text)
    return text
  })
  const { entities, shown } = await populated(ctx, plan, form, texts)
  return { entities, shown, more: more || shown < texts.length }
}

/** All of these, a line for each, as many at a time as are good for one answer. */
export async function* populatedLines(ctx: Asking, plan: Plan, form: Form, texts: string[]): AsyncGenerator<string> {
  for (let at = 0; at < texts.length; ) {
    const { entities, shown } = await populated(ctx, plan, form, texts.slice(at), '\n')
    yield `${entities}\n`
    at += shown
  }
}

/** As many of these as are good for one answer, and at least one: how many, and their JSON, by default with commas between. */
async function populated(ctx: Asking, plan: Plan, form: Form, texts: string[], between = ',') {
  let [entities, shown, most, rested] = ['', 0, texts.length, 0]
  while (shown < texts.length) {
    const some = texts.slice(shown, shown + most)
    const { write, complete } = await filling(ctx, plan, plan.sets, form, some, Math.floor(PAGE / sizeOf(plan)))
    if (!complete && some.length > 1) {
      most = Math.ceil(some.length / 2)
      continue
    }
    for (const text of some) {
      const entity = write(text)
      if (entities && entities.length + entity.length > PAGE) return { entities, shown }
      entities += entities ? between + entity : entity
      shown++
      if (entities.length - rested < TURN) continue
      rested = entities.length
      await ctx.db.pause()
    }
  }
  return { entities, shown }
}

/** How many statements share what may be read. */
const sizeOf = ({ joins, sets }: Pick<Plan, 'joins'> & Partial<Plan>): number =>
  1 + (sets?.length ?? 0) + joins.reduce((sum, { to }) => sum + (to === 'owner' ? 0 : sizeOf(to)), 0)

type Filling = { write: (shown: string) => string; complete: boolean }

/** Reads what entities refer to, then knows how to write them. Not complete when that would be more than is allowed. */
async function filling(
  ctx: Asking,
  { model, joins }: Pick<Readable, 'model' | 'joins'>,
  sets: OuterSet[],
  form: Form,
  texts: string[],
  allowed: number,
): Promise<Filling> {
  if (!joins.length && !sets.length) return { write: writer(model, ctx.actor, form), complete: true }
  const { identifiers, references } = await referencesIn(ctx.db, texts, joins)
  const joined = await Promise.all(
    joins.map(async (join) => ({ join, ...(await joinedBy(ctx, join, [...references.get(join)!], allowed)) })),
  )
  const outer = await Promise.all(
    sets.map(async (set) => ({ set, ...(await setOf(ctx, model.key, set, identifiers, allowed)) })),
  )
  const write = writer(model, ctx.actor, form, (entity) => {
    const take = taking(PAGE)
    for (const { join, json } of joined) replace(entity, join, json, take, form.flat ? 2 : 1)
    return Object.fromEntries(outer.map(({ set, of }) => [set.key, list(of(entity.identifier as string), take)]))
  })
  return { write, complete: [...joined, ...outer].every(({ complete }) => complete) }
}

/** To what entities refer, by each relation. */
async function referencesIn(db: Db, texts: string[], joins: Join[]) {
  const references = new Map(joins.map((join) => [join, new Set<string>()]))
  const identifiers: string[] = []
  let read = 0
  for (const text of texts) {
    const entity = parsed(text)
    identifiers.push(entity.identifier as string)
    for (const join of joins)
      for (const value of [referred(entity, join) ?? []].flat() as string[]) references.get(join)!.add(value)
    read += text.length
    if (read < TURN) continue
    read = 0
    await db.pause()
  }
  return { identifiers, references }
}

type Joined = { json: Map<string, string>; complete: boolean }

/** The JSON of what has these identifiers, or ids. */
async function joinedBy(ctx: Asking, { key, to }: Join, names: string[], allowed: number): Promise<Joined> {
  if (!names.length) return { json: new Map(), complete: true }
  if (to === 'owner') {
    const json = new Map<string, string>()
    for (const some of inPortions(names))
      for (const [id, card] of await owners[key as Owner](ctx.db, padded(some))) json.set(id, JSON.stringify(card))
    return { json, complete: true }
  }
  const { texts, complete } = await read(ctx.db, to, 'e.identifier', names, allowed)
  const inner = await filling(ctx, to, [], FLAT, [...texts.values()], allowed)
  const json = new Map([...texts].map(([name, text]) => [name, inner.write(text)]))
  return { json, complete: complete && inner.complete }
}

/** For each of these identifiers the JSON of the entities that point at it. */
async function setOf({ db, actor }: Asking, target: string, set: OuterSet, identifiers: string[], allowed: number) {
  if (!set.from || !identifiers.length) return { of: () => [], complete: true }
  const pointing = await pointingTo(db, target, set, identifiers)
  const numbers = [...new Set([...pointing.values()].flat())]
  const { texts, complete } = await read(db, set.from, 'e.seq', numbers, allowed, within(set.scope))
  const write = writer(set.from.model, actor, FLAT)
  const json = new Map([...texts].map(([number, text]) => [number, write(text)]))
  const of = (identifier: string) =>
    (pointing.get(identifier) ?? []).map((number) => json.get(number)).filter((one) => one !== undefined)
  return { of, complete }
}

type Take = (json: string | undefined, times?: number) => string | undefined

/** Gives what it is given, until it would be more than is left. */
function taking(left: number): Take {
  return (json, times = 1) => {
    if (json === undefined || json.length * times > left) return
    left -= json.length * times
    return json
  }
}

/** What is gone, out of sight or too much stays an identifier. */
function replace(entity: Entity, join: Join, json: Map<string, string>, take: Take, times: number) {
  const value = referred(entity, join)
  const at = join.to === 'owner' ? entity : entity.metadata
  if (Array.isArray(value))
    at[join.key] = list(
      value.map((one) => take(json.get(one), times) ?? JSON.stringify(one)),
      taking(Number.POSITIVE_INFINITY),
    )
  else {
    const found = typeof value === 'string' ? take(json.get(value), times) : undefined
    if (found) at[join.key] = new Made(found)
  }
}

const referred = (entity: Entity, { key, to }: Join) => (to === 'owner' ? entity : entity.metadata)[key]

/** A text that grows is joined once, at its end. */
function list(parts: string[], take: Take): Made {
  let json = ''
  for (const part of parts) {
    if (take(part) === undefined) break
    json += json ? `,${part}` : part
  }
  return new Made(`[${json}]`)
}
