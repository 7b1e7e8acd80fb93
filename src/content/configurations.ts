import { eq } from 'drizzle-orm'
import type { Static } from 'elysia'
import type { Ctx, PublicCtx } from '../accounts/context'
import { missingRoleMessage } from '../accounts/permissions'
import { now, toIsoString } from '../core/clock'
import { assertIfMatch, etagOf } from '../core/etag'
import { registry } from '../core/extension'
import { badRequest, notFound, Problem } from '../core/problem'
import type { IfMatch, Versioned } from '../core/response-headers'
import { success } from '../core/shapes'
import { APP_CONFIGURATION, defaultConfiguration } from '../platform/settings/app-configuration'
import { listMovedSecrets, redactSecrets, storeSecrets } from '../platform/settings/provider-secrets'
import { configurations } from '../platform/settings/tables'
import { type Vault, withVault } from '../platform/vault/vault'
import { Conflict } from '../storage/errors'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Db, Tx } from '../storage/port'
import { bumpVersion, invalidate } from '../tenancy/cache'
import { listMetadataWarnings, type Metadata, mergeMetadata, SERVER_CONFIGURATIONS } from './metadata'
import type { AppConfiguration, Configuration, ConfigurationChange, NewConfiguration } from './shapes'
import { listHostStates, reconcileHosts, withClaimedHosts } from './website-hosts'

const MAX_CONFIGURATIONS = 200 // per tenant: a list returns whole configurations

/** The configuration whose secrets are stored in the vault. */
const AUTH_CONFIGURATION = 'auth-configuration'

const SORTABLE_COLUMNS = {
  _id: configurations._id,
  key: configurations.key,
  kind: configurations.kind,
  created: configurations.created,
  updated: configurations.updated,
}

type Row = typeof configurations.$inferSelect

/** Returns a page of configurations, by key. */
export async function list(ctx: Ctx, query: ListQuery) {
  const page = parsePage(query, SORTABLE_COLUMNS, 'key')
  if (!(await findByKey(ctx.db, APP_CONFIGURATION)))
    await ctx.write((tx) =>
      tx.insert(configurations).values(defaultConfiguration(APP_CONFIGURATION, 1)).onConflictDoNothing(),
    )
  const rows = await applyPage(page, ctx.db.select().from(configurations))
  return toListPage(page, rows.map(toConfiguration), () => ctx.db.$count(configurations))
}

/** Returns a configuration. @throws 401 or 403 unless it is public, even when it does not exist, 404 */
export async function get(ctx: PublicCtx, key: string) {
  const row = await findByKey(ctx.db, key)
  if (!row?.public || SERVER_CONFIGURATIONS.includes(key)) requirePrivileged(ctx)
  return toVersioned(row ?? notFound('configuration'))
}

/** Returns the app configuration, which everyone may read, with the states of its hosts. */
export async function getApp(ctx: PublicCtx): Promise<Versioned<Static<typeof AppConfiguration>>> {
  const row = await findByKey(ctx.db, APP_CONFIGURATION)
  return { value: await withHostStates(ctx, row?.metadata ?? {}), version: etagOfRow(row) }
}

type ConfigurationCheck = (ctx: Ctx, metadata: Metadata) => Promise<void>
/** Checks that other areas run before a write to their configuration, by its key. */
export const configurationChecks = registry<ConfigurationCheck>('configuration checks')

/** Checks what does not depend on what is stored. @throws 400 */
export async function validate(ctx: Ctx, { key, public: isPublic, metadata = {} }: NewConfiguration) {
  assertMayBePublic(key, isPublic)
  await configurationChecks().get(key)?.(ctx, metadata)
}

/** Creates a configuration. @throws 400, 409 CONFIGURATION_EXISTS, TOO_MANY_CONFIGURATIONS */
export async function create(ctx: Ctx, input: NewConfiguration) {
  const { key, public: isPublic = false, kind = '', description = '', metadata = {} } = input
  if (key === APP_CONFIGURATION) throw existsProblem()
  await validate(ctx, { key, public: isPublic, metadata })
  const time = toIsoString(now())
  const full = mergeMetadata(key, {}, metadata, '/metadata')
  const row = {
    ...{ _id: Bun.randomUUIDv7(), key, public: isPublic, kind, description, version: 1 },
    ...{ metadata: withoutAuthSecrets(key, full), created: time, updated: time },
  }
  const added = writeInvalidatingCache(ctx, async (tx, vault) => {
    await tx.insert(configurations).values(row)
    if (key === AUTH_CONFIGURATION) await storeSecrets(tx, vault, full)
    if ((await tx.$count(configurations)) > MAX_CONFIGURATIONS) throw tooManyProblem()
  })
  await added.catch((error) => {
    throw error instanceof Conflict ? existsProblem(error) : error
  })
  return toVersioned(row)
}

/**
 * Changes the fields in the input, and the keys in its metadata. A missing configuration of the server is created.
 * @throws 400, 404, 412 when stale
 */
export async function update(
  ctx: Ctx,
  key: string,
  { metadata = {}, ...input }: ConfigurationChange,
  options: IfMatch,
) {
  await validate(ctx, { key, public: input.public, metadata })
  return toVersioned(await writeMetadata(ctx, key, { input, sent: metadata, at: '/metadata', ...options }))
}

/**
 * Changes keys of the app configuration, sent at the top or under `metadata`.
 * @throws 400, 409 HOST_TAKEN, 412 when stale
 */
export async function updateApp(ctx: Ctx, body: Metadata, options: IfMatch) {
  const wrapped = 'metadata' in body
  const sent = wrapped ? body.metadata : body
  if (!isRecord(sent)) return badRequest({ path: '/metadata', message: 'metadata must be an object.' })
  const change = { input: {}, sent, at: wrapped ? '/metadata' : '', ...options } as const
  const row = await writeMetadata(ctx, APP_CONFIGURATION, change)
  return { value: await withHostStates(ctx, row.metadata), version: etagOfRow(row) }
}

async function withHostStates(ctx: PublicCtx, metadata: Metadata) {
  const hosts = await listHostStates(ctx, metadata)
  return { metadata, ...(hosts.length && { hosts }) }
}

/** Removes a configuration; the defaults apply again. @throws 404, 409 CONFIGURATION_NEEDED, 412 when stale */
export async function remove(ctx: Ctx, key: string, { ifMatch }: IfMatch) {
  if (key === APP_CONFIGURATION)
    throw new Problem(409, 'CONFIGURATION_NEEDED', 'This configuration cannot be deleted. Update it instead.')
  await writeInvalidatingCache(ctx, async (tx, vault) => {
    const row = (await findByKey(tx, key)) ?? notFound('configuration')
    assertIfMatch(ifMatch, etagOfRow(row))
    await tx.delete(configurations).where(eq(configurations._id, row._id))
    if (key === AUTH_CONFIGURATION) await storeSecrets(tx, vault, {})
  })
  return success
}

const findByKey = (db: Db, key: string) => db.select().from(configurations).where(eq(configurations.key, key)).get()

/** Changes of a configuration; `at` is the path of the sent metadata in the body. */
type MetadataChange = IfMatch & { input: Partial<Row>; sent: Metadata; at: '' | '/metadata' }

/**
 * Merges `sent` into the current metadata and writes it. Another write may come first while hosts are claimed: then it
 * retries.
 */
async function writeMetadata(ctx: Ctx, key: string, { input, sent, at, ifMatch }: MetadataChange): Promise<Row> {
  try {
    for (;;) {
      const existing = await findByKey(ctx.db, key)
      const before = existing ?? (isServerConfiguration(key) ? defaultConfiguration(key, 0) : notFound('configuration'))
      assertIfMatch(ifMatch, etagOfRow(existing))
      const full = mergeMetadata(key, before.metadata, sent, at)
      const moved = key === AUTH_CONFIGURATION ? listMovedSecrets(before.metadata, full, at) : []
      if (moved.length) badRequest(...moved)
      const changes = {
        ...input,
        metadata: withoutAuthSecrets(key, full),
        version: before.version + 1,
        updated: toIsoString(now()),
      }
      const after = { ...before, ...changes }
      const write = () => replaceRow(ctx, existing, after, full)
      if (await (key === APP_CONFIGURATION && 'websiteUrls' in sent ? withClaimedHosts(ctx, after, write) : write()))
        return after
    }
  } catch (error) {
    // Housekeeping reconciles them later.
    if (key === APP_CONFIGURATION && 'websiteUrls' in sent) await reconcileHosts(ctx).catch(() => {})
    throw error
  }
}

/** Returns false when the row is no longer as `before`. `full` is the metadata with secrets. */
const replaceRow = (ctx: Ctx, before: Row | undefined, after: Row, full: Metadata) =>
  writeInvalidatingCache(ctx, async (tx, vault) => {
    const current = await findByKey(tx, after.key)
    if (current?._id !== before?._id || current?.version !== before?.version) return false
    if (before) await tx.update(configurations).set(after).where(eq(configurations._id, before._id))
    else await tx.insert(configurations).values(after)
    if (after.key === AUTH_CONFIGURATION) await storeSecrets(tx, vault, full)
    return true
  })

const withoutAuthSecrets = (key: string, metadata: Metadata) =>
  key === AUTH_CONFIGURATION ? redactSecrets(metadata) : metadata

/** Runs a write, and then invalidates the cached configurations of every process. */
async function writeInvalidatingCache<T>(ctx: Ctx, work: (tx: Tx, vault: Vault) => Promise<T>): Promise<T> {
  try {
    return await withVault(ctx, async (tx, vault) => {
      const result = await work(tx, vault)
      await bumpVersion(tx, 'configurations')
      return result
    })
  } finally {
    invalidate(ctx, 'configurations')
  }
}

const isServerConfiguration = (key: string) => key === APP_CONFIGURATION || SERVER_CONFIGURATIONS.includes(key)

function requirePrivileged({ actor }: PublicCtx) {
  if (actor?.privileged) return
  if (actor) throw new Problem(403, 'FORBIDDEN', missingRoleMessage('privileged'))
  throw new Problem(401, 'UNAUTHENTICATED', 'Sign in first, or send an API token.')
}

function assertMayBePublic(key: string, isPublic = false) {
  if (isPublic && SERVER_CONFIGURATIONS.includes(key))
    badRequest({ path: '/public', message: `The ${key} can never be public.` })
}

const existsProblem = (cause?: unknown) =>
  new Problem(409, 'CONFIGURATION_EXISTS', 'A configuration with this key already exists. Update it instead.', {
    cause,
  })

const tooManyProblem = () =>
  new Problem(
    409,
    'TOO_MANY_CONFIGURATIONS',
    `A tenant can have at most ${MAX_CONFIGURATIONS} configurations. Delete some first.`,
  )

const isRecord = (value: unknown): value is Metadata =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the ETag, also of a configuration that does not exist yet. */
const etagOfRow = (row?: Row) => etagOf(row?.version ?? 0, row?.updated ?? 0)

const toVersioned = (row: Row): Versioned<Configuration> => ({ value: toConfiguration(row), version: etagOfRow(row) })

function toConfiguration({ version: _, ...configuration }: Row): Configuration {
  const warnings = listMetadataWarnings(configuration.key, configuration.metadata)
  return { ...configuration, ...(warnings.length && { warnings }) }
}
