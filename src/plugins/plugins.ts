import { and, eq, ne, or } from 'drizzle-orm'
import type { Ctx } from '../accounts/guard'
import { users } from '../accounts/tables'
import { removeIn } from '../accounts/users/administration'
import { discardSealed, open, sealing } from '../accounts/vault/vault'
import { iso, now } from '../core/clock'
import { type Answer, forbidKeeping } from '../core/etag'
import { invalid, missing, Problem } from '../core/problem'
import { success } from '../core/shapes'
import { newestEvent } from '../jobs/fanout'
import { answerPage, type Listing, paged, pageOf } from '../storage/lists'
import type { Db, Tx } from '../storage/port'
import { changing, forget, touch } from '../tenancy/memory'
import { refuseAddresses } from './addresses'
import { noteFailure, noteSuccess, shownHealth } from './health'
import { readManifest } from './manifest'
import { newSecret, OVERLAP, secretOf } from './secrets'
import type { Manifest, NewPlugin, Plugin, PluginChange } from './shapes'
import { plugins, type Subscription } from './tables'

const MOST = 100

export type PluginRow = typeof plugins.$inferSelect
type Said = Pick<
  PluginRow,
  'name' | 'description' | 'apiPath' | 'proxyUrl' | 'manifestUrl' | 'subscribedEvents' | 'active'
>

const { _id, name, apiPath, active, created, updated } = plugins
const sortable = { _id, name, apiPath, active, created, updated }

/** A page of plugins, newest first. */
export async function list({ db }: Ctx, query: Listing, answer: Answer): Promise<Plugin[]> {
  const page = pageOf(query, sortable)
  const rows = await paged(page, db.select().from(plugins))
  return answerPage(answer, page, rows.map(shown), () => db.$count(plugins))
}

export const get = async ({ db }: Ctx, id: string): Promise<Plugin> => shown(await found(db, id))

/** A plugin. @throws 404 */
export const found = async (db: Pick<Db, 'select'>, id: string): Promise<PluginRow> =>
  (await db.select().from(plugins).where(eq(plugins._id, id)).get()) ?? missing('plugin')

/**
 * A new plugin, with its secret, which is told only now. It hears of events that come after it.
 * @throws 400 also MANIFEST_INVALID, 409 PLUGIN_EXISTS, API_PATH_EXISTS, TOO_MANY_PLUGINS, 502 MANIFEST_UNREACHABLE
 */
export async function create(ctx: Ctx, { secret = newSecret(), ...input }: NewPlugin, answer: Answer) {
  forbidKeeping(answer)
  refuseOddSecret(secret)
  const told = { ...(input.manifestUrl && (await manifestOf(ctx, input.manifestUrl))), ...given(input) }
  if (!told.name) invalid({ path: '/name', message: 'Give the plugin a name, or a manifest that does.' })
  const time = iso(now())
  const made = await sealing(ctx, async (tx, vault) => {
    if ((await tx.$count(plugins)) >= MOST)
      throw new Problem(409, 'TOO_MANY_PLUGINS', `A tenant has up to ${MOST} plugins. Remove one first.`)
    const fresh = { ...EMPTY, _id: Bun.randomUUIDv7(), created: time, updated: time }
    const row = { ...fresh, ...(await merged(tx, { ...fresh, name: '' }, told)) }
    await tx.insert(plugins).values(row)
    await vault.seal(tx, secretOf(row._id), secret)
    await touch(tx, 'plugins')
    return row
  })
  forget(ctx, 'plugins')
  return { ...shown(made), secret }
}

const EMPTY = {
  ...{ description: '', manifestUrl: null, apiPath: null, proxyUrl: null, subscribedEvents: [], active: true },
  ...{ account: null, formerUntil: null, lastError: null, failed: null, succeeded: null },
}

/** Changes what it mentions. Another manifest fills what is not mentioned. @throws as `create` does, 404 */
export async function change(ctx: Ctx, id: string, input: PluginChange): Promise<Plugin> {
  const before = await found(ctx.db, id)
  const other = input.manifestUrl && input.manifestUrl !== before.manifestUrl
  const told = { ...(other && (await manifestOf(ctx, input.manifestUrl!))), ...given(input) }
  return write(ctx, id, told)
}

/** Takes over all that the manifest says now. @throws 404, 409 NO_MANIFEST and as `create` does */
export async function reload(ctx: Ctx, id: string): Promise<Plugin> {
  const { manifestUrl } = await found(ctx.db, id)
  if (!manifestUrl) throw new Problem(409, 'NO_MANIFEST', 'This plugin has no manifestUrl to be loaded from.')
  try {
    const changed = await write(ctx, id, await manifestOf(ctx, manifestUrl))
    await ctx.write((tx) => noteSuccess(tx, id))
    return { ...changed, health: shownHealth(await found(ctx.db, id)) }
  } catch (error) {
    if (error instanceof Problem && error.status !== 404)
      await ctx.write((tx) => noteFailure(tx, id, `Manifest: ${error.message}`))
    throw error
  }
}

/** Removes a plugin with its secret and its account; what it was told goes by and by. @throws 404 */
export async function remove(ctx: Ctx, id: string) {
  await changing(ctx, 'actors', async (tx) => {
    const gone = (await tx.delete(plugins).where(eq(plugins._id, id)).returning().get()) ?? missing('plugin')
    await discardSealed(tx, 'plugin', id)
    const account = await tx
      .select({ _id: users._id })
      .from(users)
      .where(eq(users._id, gone.account ?? ''))
      .get()
    if (account) await removeIn(ctx, tx, account._id)
    await touch(tx, 'plugins')
  })
  forget(ctx, 'plugins')
  return success
}

/** Another secret, which is told only now; for a day both sign. @throws 400, 404 */
export async function rotateSecret(ctx: Ctx, id: string, secret: string | undefined, answer: Answer) {
  forbidKeeping(answer)
  await found(ctx.db, id)
  const fresh = secret ?? newSecret()
  refuseOddSecret(fresh)
  const former = await open(ctx, secretOf(id))
  const until = iso(now() + OVERLAP)
  await sealing(ctx, async (tx, vault) => {
    await found(tx, id)
    if (former) await vault.seal(tx, secretOf(id, 'former'), former)
    await vault.seal(tx, secretOf(id), fresh)
    await tx
      .update(plugins)
      .set({ formerUntil: until, updated: iso(now()) })
      .where(eq(plugins._id, id))
    await touch(tx, 'plugins')
  })
  forget(ctx, 'plugins')
  return { secret: fresh, formerUntil: until }
}

/** What the alphabet of base64 does not tell: how many bytes. */
function refuseOddSecret(secret: string) {
  const bytes = Buffer.from(secret.slice(6), 'base64').length
  if (bytes < 24 || bytes > 64) invalid({ path: '/secret', message: 'A secret has 24 to 64 bytes, in base64.' })
}

const given = (input: object) => Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))

async function manifestOf(tenant: Ctx, address: string): Promise<Manifest> {
  refuseAddresses([{ path: '/manifestUrl', url: address }])
  return readManifest(tenant, address)
}

async function write(ctx: Ctx, id: string, told: PluginChange): Promise<Plugin> {
  return changing(ctx, 'plugins', async (tx) => {
    const before = await found(tx, id)
    const after = { ...before, ...(await merged(tx, before, told)), updated: iso(now()) }
    await tx.update(plugins).set(after).where(eq(plugins._id, id))
    return shown(after)
  })
}

/** What a plugin is with what is told of it. @throws 400, 409 */
async function merged(tx: Tx, before: PluginRow, told: PluginChange): Promise<Said> {
  const { subscribedEvents, ...rest } = told
  const { name, description, apiPath, proxyUrl, manifestUrl, active } = { ...before, ...rest }
  refuseAddresses([
    { path: '/manifestUrl', url: manifestUrl },
    { path: '/proxyUrl', url: proxyUrl },
    ...(subscribedEvents ?? []).map(({ hookUrl }, n) => ({ path: `/subscribedEvents/${n}/hookUrl`, url: hookUrl })),
  ])
  await refuseTaken(tx, { _id: before._id, name, apiPath })
  const newest = await newestEvent(tx)
  const wakes = active && !before.active
  const entries = (subscribedEvents ?? before.subscribedEvents).map(
    ({ source = '*', kind = '*', eventName = '*', hookUrl, active = true }): Subscription => {
      const same = before.subscribedEvents.find(
        (one) => one.hookUrl === hookUrl && one.source === source && one.kind === kind && one.eventName === eventName,
      )
      // Who did not listen until now hears of nothing that was before.
      const since = same && !wakes && (same.active || !active) ? same.since : newest
      return { source, kind, eventName, hookUrl, active, since }
    },
  )
  return { name, description, apiPath, proxyUrl, manifestUrl, active, subscribedEvents: entries }
}

/** What the platform keeps for itself, whether it has routes there or not. */
const KEPT = [
  ...['ai', 'checkout', 'coupons', 'files', 'integration-sources', 'integrations', 'invoices', 'lambdas', 'operator'],
  ...['payments', 'permissions', 'plans', 'subscriptions', 'usage', 'v1', 'v2', 'webhooks'],
]
let isOurs = (_segment: string) => false
/** Says which paths below `/api` are the platform's own. */
export const pathsAreTakenBy = (taken: typeof isOurs) => {
  isOurs = taken
}

async function refuseTaken(tx: Tx, { _id, name, apiPath }: Pick<PluginRow, '_id' | 'name' | 'apiPath'>) {
  const alike = apiPath ? or(eq(plugins.name, name), eq(plugins.apiPath, apiPath)) : eq(plugins.name, name)
  const others = await tx
    .select({ name: plugins.name })
    .from(plugins)
    .where(and(ne(plugins._id, _id), alike))
  if (others.some((other) => other.name === name))
    throw new Problem(409, 'PLUGIN_EXISTS', 'There is a plugin of this name already. Choose another.')
  if (others.length || (apiPath && (KEPT.includes(apiPath) || isOurs(apiPath))))
    throw new Problem(409, 'API_PATH_EXISTS', `/api/${apiPath} is taken already. Choose another path.`)
}

export const shown = (row: PluginRow): Plugin => {
  const { _id, name, description, manifestUrl, apiPath, proxyUrl, active, created, updated } = row
  const subscribedEvents = row.subscribedEvents.map(({ since: _, ...told }) => told)
  const said = { _id, name, description, manifestUrl, apiPath, proxyUrl, subscribedEvents, active }
  return { ...said, health: shownHealth(row), created, updated }
}
