import type { Actor } from '../../accounts/actors'
import { findUserSummaries } from '../../accounts/users/users'
import type { Db } from '../../storage/port'
import { findWorkspaceSummaries } from '../../workspaces/workspaces'
import { scopeSql } from '../query/sql-conditions'
import { createPopulatedSerializer, type Replacement, readValues } from '../store/populated-serializer'
import {
  chooseFormat,
  createSerializer,
  FLAT_SHAPE,
  MAX_PAGE_CHARACTERS,
  parseHeader,
  type ResponseShape,
} from '../store/serializer'
import { padValues, toChunks } from '../store/sql-fragments'
import type { Join, OwnerField, PopulatePlan, ReadableBlueprint, ReverseRelation } from './populate-plan'
import { findReferencing, readCachedRelated, readRelated } from './related-reader'

type PopulateContext = { db: Db; actor?: Actor }

/** Read the summaries that replace owners, by id. */
const readOwners: Record<OwnerField, (db: Db, ids: string[]) => Promise<Map<string, object>>> = {
  user: findUserSummaries,
  workspace: findWorkspaceSummaries,
}

const CHARACTERS_PER_TURN = 1 << 16 // characters processed before other requests get their turn

/** Returns the JSON of an entity with its related entities embedded. */
export async function populateOne(
  ctx: PopulateContext,
  plan: PopulatePlan,
  shape: ResponseShape,
  shown: string,
): Promise<string> {
  return (await populateTexts(ctx, plan, shape, [shown])).entities
}

type PopulatedPage = { entities: string; shown: number; more: boolean }

/** Returns a page of populated entities. It may hold fewer entities than the page that was read. */
export async function populatePage(
  ctx: PopulateContext,
  plan: PopulatePlan,
  shape: ResponseShape,
  readPage: (collect: (shown: string) => string) => Promise<PopulatedPage>,
): Promise<PopulatedPage> {
  const texts: string[] = []
  const { more } = await readPage((text) => {
    texts.push(text)
    return text
  })
  const { entities, shown } = await populateTexts(ctx, plan, shape, texts)
  return { entities, shown, more: more || shown < texts.length }
}

/** Yields all entities populated, as one JSON line each, in chunks of the size of a response. */
export async function* populateLines(
  ctx: PopulateContext,
  plan: PopulatePlan,
  shape: ResponseShape,
  texts: string[],
): AsyncGenerator<string> {
  for (let at = 0; at < texts.length; ) {
    const { entities, shown } = await populateTexts(ctx, plan, shape, texts.slice(at), '\n')
    yield `${entities}\n`
    at += shown
  }
}

/** Populates as many entities as fit into one response, at least one. Returns their number and their joined JSON. */
async function populateTexts(
  ctx: PopulateContext,
  plan: PopulatePlan,
  shape: ResponseShape,
  texts: string[],
  between = ',',
) {
  let [entities, shown, chunkSize, pausedAt] = ['', 0, texts.length, 0]
  while (shown < texts.length) {
    const chunk = texts.slice(shown, shown + chunkSize)
    const { write, complete } = await prepareWriter(
      ctx,
      plan,
      plan.sets,
      shape,
      chunk,
      Math.floor(MAX_PAGE_CHARACTERS / countStatements(plan)),
    )
    if (!complete && chunk.length > 1) {
      chunkSize = Math.ceil(chunk.length / 2)
      continue
    }
    for (const n of chunk.keys()) {
      const entity = write(n)
      if (entities && entities.length + entity.length > MAX_PAGE_CHARACTERS) return { entities, shown }
      entities += entities ? between + entity : entity
      shown++
      if (entities.length - pausedAt < CHARACTERS_PER_TURN) continue
      pausedAt = entities.length
      await ctx.db.yieldToOthers()
    }
  }
  return { entities, shown }
}

/** Returns the number of statements that share the limit of characters. */
const countStatements = ({ joins, sets }: Pick<PopulatePlan, 'joins'> & Partial<PopulatePlan>): number =>
  1 + (sets?.length ?? 0) + joins.reduce((sum, { to }) => sum + (to === 'owner' ? 0 : countStatements(to)), 0)

/** Writes the entity of a text by its position. */
type PreparedWriter = { write: (n: number) => string; complete: boolean }

/**
 * Reads the related entities and returns a function that writes an entity with them. `complete` is false when they
 * exceed the allowed size.
 */
async function prepareWriter(
  ctx: PopulateContext,
  { model, joins }: Pick<ReadableBlueprint, 'model' | 'joins'>,
  sets: ReverseRelation[],
  shape: ResponseShape,
  texts: string[],
  allowed: number,
): Promise<PreparedWriter> {
  if (!joins.length && !sets.length) {
    const write = createSerializer(model, ctx.actor, shape)
    return { write: (n) => write(texts[n]!), complete: true }
  }
  const references = await readReferences(ctx.db, texts, joins)
  const identifiers = sets.length ? texts.map((text) => parseHeader(text).identifier) : []
  const joined = await Promise.all(
    joins.map(async (join, at) => {
      const names = new Set(references.flatMap((each) => (each[at] ?? []) as string | string[]))
      return { join, ...(await readJoin(ctx, join, [...names], allowed)) }
    }),
  )
  const outer = await Promise.all(
    sets.map(async (set) => ({ set, ...(await readReverseRelation(ctx, model.key, set, identifiers, allowed)) })),
  )
  const writeEntity = createPopulatedSerializer(model, ctx.actor, shape)
  const write = (n: number) => {
    const takeJson = createJsonBudget(MAX_PAGE_CHARACTERS)
    const replacements = joined.flatMap(({ join, json }, at) =>
      replaceReference(references[n]![at], join, json, takeJson, shape.flat ? 2 : 1),
    )
    const more = outer.map(({ set, of }): [string, string] => [set.key, joinList(of(identifiers[n]!), takeJson)])
    return writeEntity(texts[n]!, replacements, more)
  }
  return { write, complete: [...joined, ...outer].every(({ complete }) => complete) }
}

/** Returns what each entity refers to by each join. */
async function readReferences(db: Db, texts: string[], joins: Join[]): Promise<unknown[][]> {
  const properties = joins.map(({ key, to }) => ({ key, isOfSystem: to === 'owner' }))
  const references: unknown[][] = []
  let read = 0
  for (const text of texts) {
    references.push(readValues(text, properties))
    read += text.length
    if (read < CHARACTERS_PER_TURN) continue
    read = 0
    await db.yieldToOthers()
  }
  return references
}

type JoinedJson = { json: Map<string, string>; complete: boolean }

/** Returns the JSON of the targets of a join, by identifier, or by id for owners. */
async function readJoin(
  ctx: PopulateContext,
  { key, to }: Join,
  names: string[],
  allowed: number,
): Promise<JoinedJson> {
  if (!names.length) return { json: new Map(), complete: true }
  if (to === 'owner') {
    const json = new Map<string, string>()
    for (const chunk of toChunks(names))
      for (const [id, summary] of await readOwners[key as OwnerField](ctx.db, padValues(chunk)))
        json.set(id, JSON.stringify(summary))
    return { json, complete: true }
  }
  const [format, write] = chooseFormat(to.model, ctx.actor, FLAT_SHAPE)
  const cached = to.joins.length ? undefined : await readCachedRelated(ctx.db, to, format, names, allowed)
  if (cached) {
    for (const [name, text] of cached) cached.set(name, write(text))
    return { json: cached, complete: true }
  }
  const { texts, complete } = await readRelated(ctx.db, to, 'e.identifier', names, allowed)
  const inner = await prepareWriter(ctx, to, [], FLAT_SHAPE, [...texts.values()], allowed)
  const json = new Map([...texts.keys()].map((name, n) => [name, inner.write(n)]))
  return { json, complete: complete && inner.complete }
}

/** Returns a function that gives, for an identifier, the JSON of the entities that refer to it. */
async function readReverseRelation(
  { db, actor }: PopulateContext,
  target: string,
  set: ReverseRelation,
  identifiers: string[],
  allowed: number,
) {
  if (!set.from || !identifiers.length) return { of: () => [], complete: true }
  const pointing = await findReferencing(db, target, set, identifiers)
  const numbers = [...new Set([...pointing.values()].flat())]
  const { texts, complete } = await readRelated(db, set.from, 'e.seq', numbers, allowed, scopeSql(set.scope))
  const write = createSerializer(set.from.model, actor, FLAT_SHAPE)
  const json = new Map([...texts].map(([number, text]) => [number, write(text)]))
  const of = (identifier: string) =>
    (pointing.get(identifier) ?? []).map((number) => json.get(number)).filter((one) => one !== undefined)
  return { of, complete }
}

type TakeJson = (json: string | undefined, times?: number) => string | undefined

/** Returns a function that passes JSON through while it fits into the remaining budget of characters. */
function createJsonBudget(remaining: number): TakeJson {
  return (json, times = 1) => {
    if (json === undefined || json.length * times > remaining) return
    remaining -= json.length * times
    return json
  }
}

/** Returns what replaces a reference. A target that is missing, unreadable or too large stays an identifier. */
function replaceReference(
  value: unknown,
  { key, to }: Join,
  json: Map<string, string>,
  takeJson: TakeJson,
  times: number,
): Replacement[] {
  const isOfSystem = to === 'owner'
  if (Array.isArray(value)) {
    const parts = value.map((one) => takeJson(json.get(one), times) ?? JSON.stringify(one))
    return [{ key, value, json: joinList(parts, createJsonBudget(Number.POSITIVE_INFINITY)), isOfSystem }]
  }
  const replacement = typeof value === 'string' ? takeJson(json.get(value), times) : undefined
  return replacement ? [{ key, value, json: replacement, isOfSystem }] : []
}

/** Concatenates, because a growing string is flattened only once. */
function joinList(parts: string[], takeJson: TakeJson): string {
  let json = ''
  for (const part of parts) {
    if (takeJson(part) === undefined) break
    json += json ? `,${part}` : part
  }
  return `[${json}]`
}
