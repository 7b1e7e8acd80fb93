import { and, eq, inArray } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { now, toIsoString } from '../core/clock'
import { assertIfMatch, etagOf } from '../core/etag'
import { badRequest, Problem } from '../core/problem'
import type { IfMatch, ListPage, Versioned } from '../core/response-headers'
import { parseOptional, success } from '../core/shapes'
import { deleteSecrets, type Vault, withVault } from '../platform/vault/vault'
import { type ListQuery, parseNames, parsePage, readFilteredPage } from '../storage/pagination'
import type { Db, Tx } from '../storage/port'
import { bumpVersion, invalidate, writeInvalidating } from '../tenancy/cache'
import { assertUnused } from './connection-users'
import type { KindName } from './kinds/index'
import { getConnection } from './resolver'
import { assertSecretsStay } from './secret-address'
import { listSecretNames, storeSecrets, VAULT_PURPOSE } from './secrets'
import type { Connection, ConnectionChange, NewConnection } from './shapes'
import { connections } from './tables'
import { assertAllowedUrls } from './url-policy'
import { assertValidDraft, mergeValues } from './validation'

const MAX_CONNECTIONS = 500 // per tenant

const { _id, name, kind, created, updated } = connections
const sortable = { _id, name, kind, created, updated }

type Row = typeof connections.$inferSelect
type Filters = { kind?: string; name?: string; labels?: string }

/** Returns a page of connections without their secrets, newest first. @throws 400 */
export async function list({ db }: Ctx, query: ListQuery & Filters): Promise<ListPage<Connection>> {
  const page = parsePage(query, sortable)
  const [kinds, labels, wantedName] = [
    parseNames(query.kind, 'kind'),
    parseNames(query.labels, 'labels'),
    parseOptional(query.name),
  ]
  const where = and(kinds && inArray(kind, kinds as KindName[]), wantedName ? eq(name, wantedName) : undefined)
  const createQuery = () => db.select().from(connections).where(where)
  const hasWantedLabel = (row: Row) => !labels || row.labels.some((label) => labels.includes(label))
  const { items, ...others } = await readFilteredPage(page, createQuery, (batch) => batch.filter(hasWantedLabel))
  return { ...others, items: await toConnections(db, items) }
}

/** Returns a connection without its secrets. @throws 404 INTEGRATION_SOURCE_NOT_FOUND */
export const get = async ({ db }: Ctx, id: string) => toVersionedConnection(db, await getConnection(db, id))

/** Checks a connection as it would be stored. @throws 400 when it is not valid for its kind */
export function validate(
  { kind, metadata, authentication }: Omit<NewConnection, 'name'>,
  before: Row['metadata'] = {},
) {
  const values = mergeValues({}, metadata)
  assertValidDraft({ kind, metadata: values, authentication: mergeValues({}, authentication) }, before)
  assertAllowedUrls(listUrls(values))
}

/** Creates a connection. @throws 400 when it is not valid for its kind, 409 TOO_MANY_INTEGRATION_SOURCES */
export async function create(ctx: Ctx, { name, kind, labels = [], ...input }: NewConnection) {
  const [metadata, authentication] = [mergeValues({}, input.metadata), mergeValues({}, input.authentication)]
  assertValidDraft({ kind, metadata, authentication })
  assertAllowedUrls(listUrls(metadata))
  const time = toIsoString(now())
  const row: Row = { _id: Bun.randomUUIDv7(), name, kind, labels, metadata, version: 1, created: time, updated: time }
  await writeWithSecrets(ctx, async (tx, vault) => {
    if ((await tx.$count(connections)) >= MAX_CONNECTIONS)
      throw new Problem(
        409,
        'TOO_MANY_INTEGRATION_SOURCES',
        `A tenant can have at most ${MAX_CONNECTIONS} integration sources. Remove some first.`,
      )
    await tx.insert(connections).values(row)
    await storeSecrets(tx, vault, row._id, authentication)
  })
  return toVersionedConnection(ctx.db, row)
}

/** Changes the fields in `input`, and the keys in its metadata and authentication. @throws 400, 404, 412 when stale */
export async function change(ctx: Ctx, id: string, input: ConnectionChange, options: IfMatch) {
  const after = await writeWithSecrets(ctx, async (tx, vault) => {
    const before = await getForUpdate(tx, id, options)
    if (input.kind !== undefined && input.kind !== before.kind)
      badRequest({
        path: '/kind',
        message: `The kind is ${before.kind} and cannot be changed. Create another integration source instead.`,
      })
    const { name = before.name, labels = before.labels, authentication = {} } = input
    const metadata = mergeValues(before.metadata, input.metadata)
    assertValidDraft({ kind: before.kind, metadata, authentication }, before.metadata)
    if (input.metadata) assertAllowedUrls(listUrls(metadata))
    const [stored = []] = await listSecretNames(tx, [id])
    assertSecretsStay({ kind: before.kind, before: before.metadata, after: metadata }, stored, authentication)
    const row: Row = { ...before, name, labels, metadata, version: before.version + 1, updated: toIsoString(now()) }
    await tx.update(connections).set(row).where(eq(_id, id))
    await storeSecrets(tx, vault, id, authentication)
    return row
  })
  return toVersionedConnection(ctx.db, after)
}

/** Removes a connection and its secrets. @throws 404, 409 INTEGRATION_SOURCE_IN_USE, 412 when stale */
export async function remove(ctx: Ctx, id: string, options: IfMatch) {
  await writeInvalidating(ctx, 'connections', async (tx) => {
    await getForUpdate(tx, id, options)
    await assertUnused(tx, id)
    await tx.delete(connections).where(eq(_id, id))
    await deleteSecrets(tx, VAULT_PURPOSE, id)
  })
  return success
}

/** Runs a write that may store secrets, and then invalidates the cached connections of every process. */
const writeWithSecrets = <T>(ctx: Ctx, work: (tx: Tx, vault: Vault) => Promise<T>): Promise<T> =>
  withVault(ctx, async (tx, vault) => {
    const result = await work(tx, vault)
    await bumpVersion(tx, 'connections')
    return result
  }).finally(() => invalidate(ctx, 'connections'))

const listUrls = ({ url, apiUrl }: Row['metadata']) => [
  { path: '/metadata/url', url: url as string | undefined },
  { path: '/metadata/apiUrl', url: apiUrl as string | undefined },
]

/** Returns the connection. @throws 404, 412 when it has changed since the caller read it */
async function getForUpdate(db: Pick<Db, 'select'>, id: string, { ifMatch }: IfMatch) {
  const row = await getConnection(db, id)
  assertIfMatch(ifMatch, etagOf(row.version, row.updated))
  return row
}

const toVersionedConnection = async (db: Pick<Db, 'select'>, row: Row): Promise<Versioned<Connection>> => ({
  value: (await toConnections(db, [row]))[0]!,
  version: etagOf(row.version, row.updated),
})

/** Returns connections as clients see them. */
async function toConnections(db: Pick<Db, 'select'>, rows: Row[]): Promise<Connection[]> {
  const secrets = rows.length
    ? await listSecretNames(
        db,
        rows.map((row) => row._id),
      )
    : []
  return rows.map(({ version: _, ...row }, n) => ({ ...row, secrets: secrets[n]! }))
}
