import { and, eq, ne, or } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { users } from '../accounts/tables'
import { removeInTx } from '../accounts/users/administration'
import { assertAllowedUrls } from '../connections/url-policy'
import { now, toIsoString } from '../core/clock'
import { slot } from '../core/extension'
import { badRequest, notFound, Problem } from '../core/problem'
import type { ListPage } from '../core/response-headers'
import { success } from '../core/shapes'
import { listPatternWarnings } from '../events/pattern-warnings'
import { lastEventSeq } from '../jobs/event-dispatcher'
import { deleteSecrets, withVault } from '../platform/vault/vault'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Db, Tx } from '../storage/port'
import { bumpVersion, writeInvalidating } from '../tenancy/cache'
import { recordFailure, recordSuccess, toHealth } from './health'
import { readManifest } from './manifest'
import { generateSecret, SECRET_OVERLAP_MS, toSecretRef } from './secrets'
import type { Manifest, NewPlugin, Plugin, PluginChange } from './shapes'
import { type EventSubscription, plugins } from './tables'

const MAX_PLUGINS = 100

export type PluginRow = typeof plugins.$inferSelect
type PluginFields = Pick<
  PluginRow,
  'name' | 'description' | 'apiPath' | 'proxyUrl' | 'manifestUrl' | 'subscribedEvents' | 'active'
>

const { _id, name, apiPath, active, created, updated } = plugins
const sortable = { _id, name, apiPath, active, created, updated }

/** Returns a page of plugins, newest first. */
export async function list({ db }: Ctx, query: ListQuery): Promise<ListPage<Plugin>> {
  const page = parsePage(query, sortable)
  const rows = await applyPage(page, db.select().from(plugins))
  return toListPage(page, rows.map(toPlugin), () => db.$count(plugins))
}

export const get = async (ctx: Ctx, id: string): Promise<Plugin> => withWarnings(ctx, await getPlugin(ctx.db, id))

/** Returns the row of a plugin. @throws 404 PLUGIN_NOT_FOUND */
export const getPlugin = async (db: Pick<Db, 'select'>, id: string): Promise<PluginRow> =>
  (await db.select().from(plugins).where(eq(plugins._id, id)).get()) ?? notFound('plugin')

/**
 * Creates a plugin, and returns it with its secret, which is never shown again. It receives events created from now on.
 * @throws 400 also MANIFEST_INVALID, 409 PLUGIN_EXISTS, API_PATH_EXISTS, TOO_MANY_PLUGINS, 502 MANIFEST_UNREACHABLE
 */
export async function create(ctx: Ctx, { secret = generateSecret(), ...input }: NewPlugin) {
  assertSecretLength(secret)
  const fields = { ...(input.manifestUrl && (await loadManifest(ctx, input.manifestUrl))), ...omitUndefined(input) }
  if (!fields.name) badRequest({ path: '/name', message: 'name is required, here or in the manifest.' })
  const time = toIsoString(now())
  const createdRow = await withVault(ctx, async (tx, vault) => {
    if ((await tx.$count(plugins)) >= MAX_PLUGINS)
      throw new Problem(409, 'TOO_MANY_PLUGINS', `A tenant can have at most ${MAX_PLUGINS} plugins. Remove one first.`)
    const fresh = { ...EMPTY_PLUGIN, _id: Bun.randomUUIDv7(), created: time, updated: time }
    const row = { ...fresh, ...(await mergeFields(tx, { ...fresh, name: '' }, fields)) }
    await tx.insert(plugins).values(row)
    await vault.seal(tx, toSecretRef(row._id), secret)
    await bumpVersion(tx, 'plugins')
    return row
  })
  return { ...(await withWarnings(ctx, createdRow)), secret }
}

const EMPTY_PLUGIN = {
  ...{ description: '', manifestUrl: null, apiPath: null, proxyUrl: null, subscribedEvents: [], active: true },
  ...{ account: null, formerUntil: null, lastError: null, failed: null, succeeded: null },
}

/** Checks the secret, the addresses and the manifest of a plugin. @throws 400, 502 as `create` does */
export async function validate(ctx: Ctx, { secret, ...input }: NewPlugin, knownManifestUrl?: string) {
  if (secret) assertSecretLength(secret)
  assertAllowedUrls(listUrls(input))
  if (input.manifestUrl && input.manifestUrl !== knownManifestUrl) await loadManifest(ctx, input.manifestUrl)
}

const listUrls = ({ manifestUrl, proxyUrl, subscribedEvents = [] }: PluginChange) => [
  { path: '/manifestUrl', url: manifestUrl },
  { path: '/proxyUrl', url: proxyUrl },
  ...subscribedEvents.map(({ hookUrl }, n) => ({ path: `/subscribedEvents/${n}/hookUrl`, url: hookUrl })),
]

/** Changes the fields in `input`. A new manifest fills in the other fields. @throws 404 and as `create` does */
export async function change(ctx: Ctx, id: string, input: PluginChange): Promise<Plugin> {
  const before = await getPlugin(ctx.db, id)
  const hasNewManifest = input.manifestUrl && input.manifestUrl !== before.manifestUrl
  const fields = { ...(hasNewManifest && (await loadManifest(ctx, input.manifestUrl!))), ...omitUndefined(input) }
  return updatePlugin(ctx, id, fields)
}

/** Fetches the manifest again and applies all of its fields. @throws 404, 409 NO_MANIFEST and as `create` does */
export async function reload(ctx: Ctx, id: string): Promise<Plugin> {
  const { manifestUrl } = await getPlugin(ctx.db, id)
  if (!manifestUrl) throw new Problem(409, 'NO_MANIFEST', 'This plugin has no manifestUrl to reload from.')
  try {
    const changed = await updatePlugin(ctx, id, await loadManifest(ctx, manifestUrl))
    await ctx.write((tx) => recordSuccess(tx, id))
    return { ...changed, health: toHealth(await getPlugin(ctx.db, id)) }
  } catch (error) {
    // Other errors are not the plugin's fault, such as too many calls of this tenant.
    if (error instanceof Problem && [400, 409, 502].includes(error.status))
      await ctx.write((tx) => recordFailure(tx, id, `Manifest: ${error.message}`))
    throw error
  }
}

/** Removes a plugin with its secrets and its service account. Housekeeping removes its deliveries later. @throws 404 */
export async function remove(ctx: Ctx, id: string) {
  await writeInvalidating(ctx, 'actors', async (tx) => {
    const removed = (await tx.delete(plugins).where(eq(plugins._id, id)).returning().get()) ?? notFound('plugin')
    await deleteSecrets(tx, 'plugin', id)
    const account = await tx
      .select({ _id: users._id })
      .from(users)
      .where(eq(users._id, removed.account ?? ''))
      .get()
    if (account) await removeInTx(ctx, tx, account._id)
    await bumpVersion(tx, 'plugins')
  })
  return success
}

/** Replaces the secret and returns the new one, which is never shown again. Both sign for a day. @throws 400, 404 */
export async function rotateSecret(ctx: Ctx, id: string, secret: string | undefined) {
  await getPlugin(ctx.db, id)
  const fresh = secret ?? generateSecret()
  assertSecretLength(fresh)
  const until = toIsoString(now() + SECRET_OVERLAP_MS)
  await withVault(ctx, async (tx, vault) => {
    await getPlugin(tx, id)
    const former = await vault.open(tx, toSecretRef(id))
    if (former) await vault.seal(tx, toSecretRef(id, 'former'), former)
    await vault.seal(tx, toSecretRef(id), fresh)
    await tx
      .update(plugins)
      .set({ formerUntil: until, updated: toIsoString(now()) })
      .where(eq(plugins._id, id))
    await bumpVersion(tx, 'plugins')
  })
  return { secret: fresh, formerUntil: until }
}

/** The pattern of the field checks only the characters, not the number of bytes. @throws 400 */
function assertSecretLength(secret: string) {
  const bytes = Buffer.from(secret.slice(6), 'base64').length
  if (bytes < 24 || bytes > 64)
    badRequest({ path: '/secret', message: 'The secret must have 24 to 64 bytes, encoded in base64.' })
}

const omitUndefined = (input: object) =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))

async function loadManifest(tenant: Ctx, address: string): Promise<Manifest> {
  assertAllowedUrls([{ path: '/manifestUrl', url: address }])
  return readManifest(tenant, address)
}

async function updatePlugin(ctx: Ctx, id: string, fields: PluginChange): Promise<Plugin> {
  const row = await writeInvalidating(ctx, 'plugins', async (tx) => {
    const before = await getPlugin(tx, id)
    const after = { ...before, ...(await mergeFields(tx, before, fields)), updated: toIsoString(now()) }
    await tx.update(plugins).set(after).where(eq(plugins._id, id))
    return after
  })
  return withWarnings(ctx, row)
}

/** Returns the fields of a plugin after `changes`. @throws 400, 409 PLUGIN_EXISTS, API_PATH_EXISTS */
async function mergeFields(tx: Tx, before: PluginRow, changes: PluginChange): Promise<PluginFields> {
  const { subscribedEvents, ...otherChanges } = changes
  const { name, description, apiPath, proxyUrl, manifestUrl, active } = { ...before, ...otherChanges }
  assertAllowedUrls(listUrls({ manifestUrl, proxyUrl, subscribedEvents }))
  await assertAvailable(tx, { _id: before._id, name, apiPath })
  const newest = await lastEventSeq(tx)
  const isActivated = active && !before.active
  const entries = (subscribedEvents ?? before.subscribedEvents).map(
    ({ source = '*', kind = '*', eventName = '*', hookUrl, active = true }): EventSubscription => {
      const existing = before.subscribedEvents.find(
        (entry) =>
          entry.hookUrl === hookUrl && entry.source === source && entry.kind === kind && entry.eventName === eventName,
      )
      // A subscription that was not active until now receives only later events.
      const since = existing && !isActivated && (existing.active || !active) ? existing.since : newest
      return { source, kind, eventName, hookUrl, active, since }
    },
  )
  return { name, description, apiPath, proxyUrl, manifestUrl, active, subscribedEvents: entries }
}

/** Segments of `/api/<segment>` that are reserved for the platform, with or without routes. */
const RESERVED_PATHS = [
  ...['ai', 'checkout', 'coupons', 'files', 'integration-sources', 'integrations', 'invoices', 'lambdas', 'operator'],
  ...['payments', 'permissions', 'plans', 'subscriptions', 'usage', 'v1', 'v2', 'webhooks'],
]
/** Returns whether the platform has routes below `/api/<segment>`. */
export const platformPaths = slot<(segment: string) => boolean>('paths of the platform')

async function assertAvailable(tx: Tx, { _id, name, apiPath }: Pick<PluginRow, '_id' | 'name' | 'apiPath'>) {
  const sameNameOrPath = apiPath ? or(eq(plugins.name, name), eq(plugins.apiPath, apiPath)) : eq(plugins.name, name)
  const others = await tx
    .select({ name: plugins.name })
    .from(plugins)
    .where(and(ne(plugins._id, _id), sameNameOrPath))
  if (others.some((other) => other.name === name))
    throw new Problem(409, 'PLUGIN_EXISTS', 'A plugin with this name already exists. Choose another name.')
  if (apiPath) assertPathAvailable(apiPath, !others.length)
}

/** @throws 409 API_PATH_EXISTS when a plugin or the platform has the path */
export function assertPathAvailable(apiPath: string, isFree: boolean) {
  if (!isFree || RESERVED_PATHS.includes(apiPath) || platformPaths()(apiPath))
    throw new Problem(409, 'API_PATH_EXISTS', `/api/${apiPath} is already taken. Choose another path.`)
}

/** Returns a plugin, with a warning for each subscription to events that nothing records. */
async function withWarnings(ctx: Ctx, row: PluginRow): Promise<Plugin> {
  const patterns = row.subscribedEvents.map(({ source, kind, eventName }, n) => {
    const at = `/subscribedEvents/${n}`
    return {
      source,
      kind,
      eventName,
      paths: { source: `${at}/source`, kind: `${at}/kind`, eventName: `${at}/eventName` },
    }
  })
  const warnings = await listPatternWarnings(ctx, patterns)
  return { ...toPlugin(row), ...(warnings.length && { warnings }) }
}

export const toPlugin = (row: PluginRow): Plugin => {
  const { _id, name, description, manifestUrl, apiPath, proxyUrl, active, created, updated } = row
  const subscribedEvents = row.subscribedEvents.map(({ since: _, ...entry }) => entry)
  const fields = { _id, name, description, manifestUrl, apiPath, proxyUrl, subscribedEvents, active }
  return { ...fields, health: toHealth(row), created, updated }
}
