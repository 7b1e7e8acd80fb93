import { and, count, eq, sum } from 'drizzle-orm'
import type { Static } from 'elysia'
import type { Ctx } from '../accounts/context'
import { now, toIsoString } from '../core/clock'
import { assertIfMatch, etagOf } from '../core/etag'
import { badRequest, notFound, Problem } from '../core/problem'
import type { IfMatch, Versioned } from '../core/response-headers'
import { success } from '../core/shapes'
import { Conflict } from '../storage/errors'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Db, Tx } from '../storage/port'
import { type Build, buildPath, saveBuild } from './builds'
import { compile } from './compiler'
import type { CompileOutcome } from './compiler-process'
import type { Component, ComponentChange, NewComponent } from './shapes'
import { builds, components } from './tables'

const MAX_COMPONENTS = 1_000 // per tenant
const MAX_TOTAL_CHARACTERS = 16 << 20 // characters of contents and newest builds per tenant

const SORTABLE_COLUMNS = {
  _id: components._id,
  identifier: components.identifier,
  componentName: components.componentName,
  created: components.created,
  updated: components.updated,
}

/** Returns a page of components, newest first. */
export async function list({ db }: Ctx, query: ListQuery) {
  const page = parsePage(query, SORTABLE_COLUMNS)
  const rows = await applyPage(page, selectComponents(db))
  return toListPage(page, rows.map(toComponent), () => db.$count(components))
}

/** Returns a component by `_id` or identifier. @throws 404 COMPONENT_NOT_FOUND */
export const get = async ({ db }: Ctx, name: string) => toVersioned(await getComponent(db, name))

/** Creates a component. @throws 400 when it does not compile, 409 COMPONENT_EXISTS, TOO_MANY_COMPONENTS, 503 */
export async function create(ctx: Ctx, input: NewComponent) {
  const build = await compileContent(ctx, input.content)
  return toVersioned(await ctx.write((tx) => insertComponent(tx, input, build)).catch(rethrowConflict))
}

/** Changes the fields in `input`. @throws 400, 404, 409, 412 when stale, 503 */
export async function update(ctx: Ctx, name: string, input: ComponentChange, options: IfMatch) {
  await getForUpdate(ctx.db, name, options)
  const build = input.content === undefined ? undefined : await compileContent(ctx, input.content)
  const saving = ctx.write(async (tx) => updateComponent(tx, await getForUpdate(tx, name, options), input, build))
  return toVersioned(await saving.catch(rethrowConflict))
}

/** Removes a component with all of its builds. @throws 404, 412 when stale */
export async function remove(ctx: Ctx, name: string, options: IfMatch) {
  await ctx.write(async (tx) => {
    const { component } = await getForUpdate(tx, name, options)
    await tx.delete(components).where(eq(components._id, component._id))
  })
  return success
}

/** Changes the component with this identifier, or creates it. `build` is that of `input.content`. @throws 400, 409 */
export async function upsert(ctx: Ctx, input: ComponentChange & { identifier: string }, build: Build | undefined) {
  const { identifier, content } = input
  const saved = ctx.write(async (tx) => {
    const before = await findByIdentifier(tx, identifier)
    if (before) return updateComponent(tx, before, input, build)
    if (content === undefined || !build)
      return badRequest({ path: '/content', message: 'A new component needs content.' })
    return insertComponent(tx, { ...input, identifier, content }, build)
  })
  return toComponent(await saved.catch(rethrowConflict))
}

/** Returns the build of an outcome. @throws 400 with each error and its position */
export function toBuild(outcome: CompileOutcome): Build {
  if (!('flaws' in outcome)) return outcome
  const { flaws } = outcome
  const message =
    flaws.length === 1 ? flaws[0]!.message : `The content has ${flaws.length} errors. ${flaws[0]!.message}`
  throw new Problem(400, 'INVALID_INPUT', message, { details: flaws })
}

/** Compiles a component. @throws 400, 503 */
export async function compileContent(ctx: Ctx, content: string): Promise<Build> {
  const [outcome] = await compile(ctx, [content])
  return toBuild(outcome!)
}

type Row = Awaited<ReturnType<typeof getComponent>>

const selectComponents = (db: Db) =>
  db
    .select({ component: components, js: builds.js, css: builds.css })
    .from(components)
    .innerJoin(builds, and(eq(builds.component, components._id), eq(builds.path, components.path)))

const findByIdentifier = (db: Db, name: string) => selectComponents(db).where(eq(components.identifier, name)).get()

/** An `_id` takes precedence, so that no component can replace another by taking its `_id` as an identifier. */
const getComponent = async (db: Db, name: string) =>
  (await selectComponents(db).where(eq(components._id, name)).get()) ??
  (await findByIdentifier(db, name)) ??
  notFound('component')

/** Returns the component. @throws 404, 412 when it has changed since the caller read it */
async function getForUpdate(db: Db, name: string, { ifMatch }: IfMatch) {
  const row = await getComponent(db, name)
  assertIfMatch(ifMatch, etagOf(row.component.version, row.component.updated))
  return row
}

async function insertComponent(tx: Tx, input: NewComponent, { js, css }: Build): Promise<Row> {
  const { identifier, componentName = identifier, description = '', content, requiredProps = [] } = input
  const time = toIsoString(now())
  const component = {
    ...{ _id: Bun.randomUUIDv7(), identifier, componentName, description, content, requiredProps },
    ...{ path: buildPath(identifier, { js, css }), builds: 1, size: content.length + js.length + css.length },
    ...{ version: 1, created: time, updated: time },
  }
  await tx.insert(components).values(component)
  await saveBuild(tx, component._id, component.path, 1, { js, css })
  await assertWithinLimits(tx)
  return { component, js, css }
}

async function updateComponent(
  tx: Tx,
  { component: before, ...oldBuild }: Row,
  input: ComponentChange,
  build?: Build,
): Promise<Row> {
  const { js, css } = build ?? oldBuild
  const { identifier, componentName, description, content, requiredProps } = { ...before, ...input }
  const path = buildPath(identifier, { js, css })
  const component = {
    ...before,
    ...{ identifier, componentName, description, content, requiredProps },
    ...{ path, builds: before.builds + (path === before.path ? 0 : 1), size: content.length + js.length + css.length },
    ...{ version: before.version + 1, updated: toIsoString(now()) },
  }
  await tx.update(components).set(component).where(eq(components._id, before._id))
  if (path !== before.path) await saveBuild(tx, before._id, path, component.builds, { js, css })
  if (component.size > before.size) await assertWithinLimits(tx)
  return { component, js, css }
}

async function assertWithinLimits(tx: Tx) {
  const [usage] = await tx.select({ count: count(), size: sum(components.size) }).from(components)
  if (usage && (usage.count > MAX_COMPONENTS || Number(usage.size) > MAX_TOTAL_CHARACTERS))
    throw new Problem(
      409,
      'TOO_MANY_COMPONENTS',
      `A tenant can have at most ${MAX_COMPONENTS} components with ${MAX_TOTAL_CHARACTERS >> 20} MiB in total. Delete some first.`,
    )
}

function rethrowConflict(error: unknown): never {
  if (error instanceof Conflict)
    throw new Problem(409, 'COMPONENT_EXISTS', 'A component with this identifier already exists.', { cause: error })
  throw error
}

const toVersioned = (row: Row): Versioned<Static<typeof Component>> => ({
  value: toComponent(row),
  version: etagOf(row.component.version, row.component.updated),
})

function toComponent({ component, js, css }: Row): Static<typeof Component> {
  const { _id, identifier, componentName, description, content, requiredProps, created, updated } = component
  const compiledContent = { js, css }
  return { _id, identifier, componentName, description, content, compiledContent, requiredProps, created, updated }
}
