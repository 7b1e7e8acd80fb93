import { and, count, eq, sum } from 'drizzle-orm'
import type { Static } from 'elysia'
import type { Ctx } from '../accounts/guard'
import { iso, now } from '../core/clock'
import { type Answer, etagOf, giveEtag, refuseStale } from '../core/etag'
import { invalid, missing, Problem } from '../core/problem'
import { success } from '../core/shapes'
import { Conflict } from '../storage/errors'
import { answerPage, type Listing, paged, pageOf } from '../storage/lists'
import type { Db, Tx } from '../storage/port'
import { type Build, keep, pathOf } from './builds'
import { compile } from './compiler'
import type { Outcome } from './compiling'
import type { Component, ComponentChange, NewComponent } from './shapes'
import { builds, components } from './tables'

const MOST = 1_000 // of a tenant
const SPACE = 16 << 20 // characters of all their contents and newest builds: a list may show them all

const sortable = {
  _id: components._id,
  identifier: components.identifier,
  componentName: components.componentName,
  created: components.created,
  updated: components.updated,
}

/** A page of components, newest first. */
export async function list({ db }: Ctx, query: Listing, answer: Answer) {
  const page = pageOf(query, sortable)
  const rows = await paged(page, found(db))
  return answerPage(answer, page, rows.map(shown), () => db.$count(components))
}

/** One component, by `_id` or identifier. */
export const get = async ({ db }: Ctx, name: string, answer: Answer) => told(await named(db, name), answer)

/** A new component. @throws 400 when it does not compile, 409 COMPONENT_EXISTS, TOO_MANY_COMPONENTS. */
export async function create(ctx: Ctx, input: NewComponent, answer: Answer) {
  const build = await compiled(ctx, input.content)
  return told(await ctx.write((tx) => add(tx, input, build)).catch(taken), answer)
}

/** Changes what it mentions. @throws 400, 404, 409, 412 when stale. */
export async function change(ctx: Ctx, name: string, input: ComponentChange, answer: Answer) {
  await current(ctx.db, name, answer)
  const build = input.content === undefined ? undefined : await compiled(ctx, input.content)
  const changed = ctx.write(async (tx) => alter(tx, await current(tx, name, answer), input, build))
  return told(await changed.catch(taken), answer)
}

/** Removes a component, and all of its builds at once. */
export async function remove(ctx: Ctx, name: string, answer: Answer) {
  await ctx.write(async (tx) => {
    const { component } = await current(tx, name, answer)
    await tx.delete(components).where(eq(components._id, component._id))
  })
  return success
}

/** Changes the component of that identifier, or makes it. `build` is of the content, where there is one. */
export async function put(ctx: Ctx, input: ComponentChange & { identifier: string }, build: Build | undefined) {
  const { identifier, content } = input
  const written = ctx.write(async (tx) => {
    const before = await byIdentifier(tx, identifier)
    if (before) return alter(tx, before, input, build)
    if (content === undefined || !build) return invalid({ path: '/content', message: 'A new component needs content.' })
    return add(tx, { ...input, identifier, content }, build)
  })
  return shown(await written.catch(taken))
}

/** What was made of a content. @throws 400 with what is wrong with it, and where. */
export function built(outcome: Outcome): Build {
  if (!('flaws' in outcome)) return outcome
  const { flaws } = outcome
  const message =
    flaws.length === 1 ? flaws[0]!.message : `The content has ${flaws.length} errors. ${flaws[0]!.message}`
  throw new Problem(400, 'INVALID_INPUT', message, { details: flaws })
}

async function compiled(ctx: Ctx, content: string): Promise<Build> {
  const [outcome] = await compile(ctx, [content])
  return built(outcome!)
}

type Row = Awaited<ReturnType<typeof named>>

const found = (db: Db) =>
  db
    .select({ component: components, js: builds.js, css: builds.css })
    .from(components)
    .innerJoin(builds, and(eq(builds.component, components._id), eq(builds.path, components.path)))

const byIdentifier = (db: Db, name: string) => found(db).where(eq(components.identifier, name)).get()

/** An `_id` comes first: nobody can stand in for another by taking it as an identifier. */
const named = async (db: Db, name: string) =>
  (await found(db).where(eq(components._id, name)).get()) ?? (await byIdentifier(db, name)) ?? missing('component')

/** The component, if it still is what the caller has read. */
async function current(db: Db, name: string, { request }: Answer) {
  const row = await named(db, name)
  refuseStale(request, etagOf(row.component.version, row.component.updated))
  return row
}

async function add(tx: Tx, input: NewComponent, { js, css }: Build): Promise<Row> {
  const { identifier, componentName = identifier, description = '', content, requiredProps = [] } = input
  const time = iso(now())
  const component = {
    ...{ _id: Bun.randomUUIDv7(), identifier, componentName, description, content, requiredProps },
    ...{ path: pathOf(identifier, { js, css }), builds: 1, size: content.length + js.length + css.length },
    ...{ version: 1, created: time, updated: time },
  }
  await tx.insert(components).values(component)
  await keep(tx, component._id, component.path, 1, { js, css })
  await refuseTooMuch(tx)
  return { component, js, css }
}

async function alter(tx: Tx, { component: before, ...old }: Row, input: ComponentChange, build?: Build): Promise<Row> {
  const { js, css } = build ?? old
  const { identifier, componentName, description, content, requiredProps } = { ...before, ...input }
  const path = pathOf(identifier, { js, css })
  const component = {
    ...before,
    ...{ identifier, componentName, description, content, requiredProps },
    ...{ path, builds: before.builds + (path === before.path ? 0 : 1), size: content.length + js.length + css.length },
    ...{ version: before.version + 1, updated: iso(now()) },
  }
  await tx.update(components).set(component).where(eq(components._id, before._id))
  if (path !== before.path) await keep(tx, before._id, path, component.builds, { js, css })
  if (component.size > before.size) await refuseTooMuch(tx)
  return { component, js, css }
}

async function refuseTooMuch(tx: Tx) {
  const [kept] = await tx.select({ count: count(), size: sum(components.size) }).from(components)
  if (kept && (kept.count > MOST || Number(kept.size) > SPACE))
    throw new Problem(
      409,
      'TOO_MANY_COMPONENTS',
      `A tenant has room for ${MOST} components, of ${SPACE >> 20} MiB together. Remove some first.`,
    )
}

function taken(error: unknown): never {
  if (error instanceof Conflict)
    throw new Problem(409, 'COMPONENT_EXISTS', 'There is a component with this identifier already.', { cause: error })
  throw error
}

function told(row: Row, answer: Answer) {
  giveEtag(answer, etagOf(row.component.version, row.component.updated))
  return shown(row)
}

function shown({ component, js, css }: Row): Static<typeof Component> {
  const { _id, identifier, componentName, description, content, requiredProps, created, updated } = component
  const compiledContent = { js, css }
  return { _id, identifier, componentName, description, content, compiledContent, requiredProps, created, updated }
}
