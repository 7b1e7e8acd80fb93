import { eq } from 'drizzle-orm'
import type { Ctx, OpenCtx } from '../accounts/guard'
import { missingRole } from '../accounts/permissions'
import { keepSecrets, withoutSecrets } from '../accounts/settings/secrets'
import { configurations } from '../accounts/settings/tables'
import { sealing, type Vault } from '../accounts/vault/vault'
import { iso, now } from '../core/clock'
import { type Answer, etagOf, giveEtag, refuseStale } from '../core/etag'
import { invalid, missing, Problem } from '../core/problem'
import { success } from '../core/shapes'
import { Conflict } from '../storage/errors'
import { answerPage, type Listing, paged, pageOf } from '../storage/lists'
import type { Db, Tx } from '../storage/port'
import { forget, touch } from '../tenancy/memory'
import { type Metadata, merged } from './metadata'
import type { Configuration, ConfigurationChange, NewConfiguration } from './shapes'
import { APP, hostStates, settleHosts, untouched, withHosts } from './websites'

const MOST = 200 // of a tenant: a list shows them whole

/** The one that holds secrets, which go to the vault. */
const AUTH = 'auth-configuration'

/** What the server goes by, and maybe secret: never public, whatever anybody says. */
const PRIVATE = [
  ...['ai-configuration', 'auth-configuration', 'mail-templates', 'payments-configuration', 'workspace-configuration'],
]

const sortable = {
  _id: configurations._id,
  key: configurations.key,
  kind: configurations.kind,
  created: configurations.created,
  updated: configurations.updated,
}

type Row = typeof configurations.$inferSelect

/** A page of configurations, by key. */
export async function list(ctx: Ctx, query: Listing, answer: Answer) {
  const page = pageOf(query, sortable, 'key')
  if (!(await byKey(ctx.db, APP)))
    await ctx.write((tx) => tx.insert(configurations).values(untouched(APP, 1)).onConflictDoNothing())
  const rows = await paged(page, ctx.db.select().from(configurations))
  return answerPage(answer, page, rows.map(shown), () => ctx.db.$count(configurations))
}

/** One configuration. @throws 401 or 403, whether it is there or not, when it is not public; 404 */
export async function get(ctx: OpenCtx, key: string, answer: Answer) {
  const row = await byKey(ctx.db, key)
  if (!row?.public || PRIVATE.includes(key)) requirePrivileged(ctx)
  return told(row ?? missing('configuration'), answer)
}

/** What everybody may know. */
export async function getApp(ctx: OpenCtx, answer: Answer) {
  const row = await byKey(ctx.db, APP)
  giveEtag(answer, etagFor(row))
  return withHostStates(ctx, row?.metadata ?? {})
}

type Check = (ctx: Ctx, metadata: Metadata) => Promise<void>
const checks = new Map<string, Check>()

/** Has what is written to a configuration of the server checked by the area that goes by it. */
export const registerConfigurationCheck = (key: string, check: Check) => void checks.set(key, check)

/** A new configuration. @throws 400, 409 CONFIGURATION_EXISTS, TOO_MANY_CONFIGURATIONS. */
export async function create(ctx: Ctx, input: NewConfiguration, answer: Answer) {
  const { key, public: open = false, kind = '', description = '', metadata = {} } = input
  if (key === APP) throw exists()
  refuseOpen(key, open)
  const time = iso(now())
  await checks.get(key)?.(ctx, metadata)
  const full = merged(key, {}, metadata, '/metadata')
  const row = {
    ...{ _id: Bun.randomUUIDv7(), key, public: open, kind, description, version: 1 },
    ...{ metadata: bare(key, full), created: time, updated: time },
  }
  const added = writing(ctx, async (tx, vault) => {
    await tx.insert(configurations).values(row)
    if (key === AUTH) await keepSecrets(tx, vault, full)
    if ((await tx.$count(configurations)) > MOST) throw tooMany()
  })
  await added.catch((error) => {
    throw error instanceof Conflict ? exists(error) : error
  })
  return told(row, answer)
}

/** Changes what it mentions; of the metadata, its keys. Makes one of the server's. @throws 400, 404, 412 when stale. */
export async function change(ctx: Ctx, key: string, { metadata = {}, ...input }: ConfigurationChange, answer: Answer) {
  refuseOpen(key, input.public)
  await checks.get(key)?.(ctx, metadata)
  return told(await written(ctx, key, input, metadata, '/metadata', answer), answer)
}

/** The same for what everybody may know, whose keys come as they are or under `metadata`. @throws also 409 HOST_TAKEN */
export async function changeApp(ctx: Ctx, body: Metadata, answer: Answer) {
  const wrapped = 'metadata' in body
  const sent = wrapped ? body.metadata : body
  if (!isRecord(sent)) return invalid({ path: '/metadata', message: 'metadata must be an object.' })
  const { metadata } = told(await written(ctx, APP, {}, sent, wrapped ? '/metadata' : '', answer), answer)
  return withHostStates(ctx, metadata)
}

async function withHostStates(ctx: OpenCtx, metadata: Metadata) {
  const hosts = await hostStates(ctx, metadata)
  return { metadata, ...(hosts.length && { hosts }) }
}

/** Removes a configuration: what holds where none is set holds again. @throws 404, 409, 412 when stale. */
export async function remove(ctx: Ctx, key: string, answer: Answer) {
  if (key === APP) throw new Problem(409, 'CONFIGURATION_NEEDED', 'This configuration is needed. Change what is in it.')
  await writing(ctx, async (tx, vault) => {
    const row = (await byKey(tx, key)) ?? missing('configuration')
    refuseStale(answer.request, etagFor(row))
    await tx.delete(configurations).where(eq(configurations._id, row._id))
    if (key === AUTH) await keepSecrets(tx, vault, {})
  })
  return success
}

const byKey = (db: Db, key: string) => db.select().from(configurations).where(eq(configurations.key, key)).get()

/** Writes what was sent upon what there is now. Its hosts are claimed in between, so somebody else may be faster. */
async function written(
  ctx: Ctx,
  key: string,
  input: Partial<Row>,
  sent: Metadata,
  at: '' | '/metadata',
  answer: Answer,
) {
  try {
    for (;;) {
      const known = await byKey(ctx.db, key)
      const before = known ?? (isServers(key) ? untouched(key, 0) : missing('configuration'))
      refuseStale(answer.request, etagFor(known))
      const full = merged(key, before.metadata, sent, at)
      const changes = { ...input, metadata: bare(key, full), version: before.version + 1, updated: iso(now()) }
      const after = { ...before, ...changes }
      const write = () => replace(ctx, known, after, full)
      if (await (key === APP && 'websiteUrls' in sent ? withHosts(ctx, after, write) : write())) return after
    }
  } catch (error) {
    if (key === APP && 'websiteUrls' in sent) await settleHosts(ctx).catch(() => {})
    throw error
  }
}

/** False when it is not as it was before any more. `full` is its metadata with the secrets. */
const replace = (ctx: Ctx, before: Row | undefined, after: Row, full: Metadata) =>
  writing(ctx, async (tx, vault) => {
    const found = await byKey(tx, after.key)
    if (found?._id !== before?._id || found?.version !== before?.version) return false
    if (before) await tx.update(configurations).set(after).where(eq(configurations._id, before._id))
    else await tx.insert(configurations).values(after)
    if (after.key === AUTH) await keepSecrets(tx, vault, full)
    return true
  })

const bare = (key: string, metadata: Metadata) => (key === AUTH ? withoutSecrets(metadata) : metadata)

/** A write after which no process goes by what it remembers of configurations. */
async function writing<T>(ctx: Ctx, work: (tx: Tx, vault: Vault) => Promise<T>): Promise<T> {
  try {
    return await sealing(ctx, async (tx, vault) => {
      const result = await work(tx, vault)
      await touch(tx, 'configurations')
      return result
    })
  } finally {
    forget(ctx, 'configurations')
  }
}

const isServers = (key: string) => key === APP || PRIVATE.includes(key)

function requirePrivileged({ actor }: OpenCtx) {
  if (actor?.privileged) return
  if (actor) throw new Problem(403, 'FORBIDDEN', missingRole('privileged'))
  throw new Problem(401, 'UNAUTHENTICATED', 'Sign in first, or send an API token.')
}

function refuseOpen(key: string, open = false) {
  if (open && PRIVATE.includes(key)) invalid({ path: '/public', message: `The ${key} can never be public.` })
}

const exists = (cause?: unknown) =>
  new Problem(409, 'CONFIGURATION_EXISTS', 'There is a configuration with this key already. Change that one.', {
    cause,
  })

const tooMany = () =>
  new Problem(409, 'TOO_MANY_CONFIGURATIONS', `A tenant has room for ${MOST} configurations. Remove some first.`)

const isRecord = (value: unknown): value is Metadata =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Also of what nobody has written yet. */
const etagFor = (row?: Row) => etagOf(row?.version ?? 0, row?.updated ?? 0)

function told(row: Row, answer: Answer) {
  giveEtag(answer, etagFor(row))
  return shown(row)
}

function shown({ version: _, ...configuration }: Row): Configuration {
  return configuration
}
