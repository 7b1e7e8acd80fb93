import { and, eq, inArray } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { discardSealed, sealing, type Vault } from '../../accounts/vault/vault'
import { iso, now } from '../../core/clock'
import { type Answer, etagOf, giveEtag, refuseStale } from '../../core/etag'
import { invalid, Problem } from '../../core/problem'
import { given, success } from '../../core/shapes'
import { answerPage, judgedPage, type Listing, namesOf, pageOf } from '../../storage/lists'
import type { Db, Tx } from '../../storage/port'
import { changing, forget, touch } from '../../tenancy/memory'
import { refuseAddresses } from '../addresses'
import { over, refuseUnfit } from './fitting'
import type { KindName } from './kinds'
import { found } from './opening'
import { keepSecrets, PURPOSE } from './secrets'
import type { Connection, ConnectionChange, NewConnection } from './shapes'
import { connections } from './tables'
import { refuseUsed } from './usage'

const MOST = 500 // of a tenant

const { _id, name, kind, created, updated } = connections
const sortable = { _id, name, kind, created, updated }

type Row = typeof connections.$inferSelect
type Filters = { kind?: string; name?: string; labels?: string }

/** A page of connections, newest first; never with their secrets. */
export async function list({ db }: Ctx, query: Listing & Filters, answer: Answer) {
  const page = pageOf(query, sortable)
  const [kinds, labels, called] = [namesOf(query.kind, 'kind'), namesOf(query.labels, 'labels'), given(query.name)]
  const where = and(kinds && inArray(kind, kinds as KindName[]), called ? eq(name, called) : undefined)
  const read = (limit: number, offset: number) =>
    db
      .select()
      .from(connections)
      .where(where)
      .orderBy(...page.order)
      .limit(limit)
      .offset(offset)
  const labeled = (row: Row) => !labels || row.labels.some((label) => labels.includes(label))
  const { rows, total } = await judgedPage(page, read, (some) => some.filter(labeled))
  return answerPage(answer, page, rows.map(shown), async () => total)
}

/** One connection; throws 404. */
export const get = async ({ db }: Ctx, id: string, answer: Answer) => told(await found(db, id), answer)

/** A new connection. @throws 400 where it is not as its kind has to be, 409 TOO_MANY_INTEGRATION_SOURCES */
export async function create(ctx: Ctx, { name, kind, labels = [], ...input }: NewConnection, answer: Answer) {
  const [metadata, authentication] = [over({}, input.metadata), over({}, input.authentication)]
  refuseUnfit({ kind, metadata, authentication })
  refuseAddresses(addressesIn(metadata))
  const time = iso(now())
  const row: Row = { _id: Bun.randomUUIDv7(), name, kind, labels, metadata, version: 1, created: time, updated: time }
  await altering(ctx, async (tx, vault) => {
    if ((await tx.$count(connections)) >= MOST)
      throw new Problem(409, 'TOO_MANY_INTEGRATION_SOURCES', `A tenant has up to ${MOST} of them. Remove some first.`)
    await tx.insert(connections).values(row)
    await keepSecrets(tx, vault, row._id, authentication)
  })
  return told(row, answer)
}

/** Changes what it mentions, also within metadata and authentication. @throws 400, 404, 412 when stale */
export async function change(ctx: Ctx, id: string, input: ConnectionChange, answer: Answer) {
  const after = await altering(ctx, async (tx, vault) => {
    const before = await current(tx, id, answer)
    if (input.kind !== undefined && input.kind !== before.kind)
      invalid({ path: '/kind', message: `It is of the kind ${before.kind}, and stays so. Make another one instead.` })
    const { name = before.name, labels = before.labels, authentication = {} } = input
    const metadata = over(before.metadata, input.metadata)
    refuseUnfit({ kind: before.kind, metadata, authentication }, before.metadata)
    if (input.metadata) refuseAddresses(addressesIn(metadata))
    const row: Row = { ...before, name, labels, metadata, version: before.version + 1, updated: iso(now()) }
    await tx.update(connections).set(row).where(eq(_id, id))
    await keepSecrets(tx, vault, id, authentication)
    return row
  })
  return told(after, answer)
}

/** Removes a connection, with its secrets. @throws 404, 409 INTEGRATION_SOURCE_IN_USE, 412 when stale */
export async function remove(ctx: Ctx, id: string, answer: Answer) {
  await changing(ctx, 'connections', async (tx) => {
    await current(tx, id, answer)
    await refuseUsed(tx, id)
    await tx.delete(connections).where(eq(_id, id))
    await discardSealed(tx, PURPOSE, id)
  })
  return success
}

/** A write that also keeps secrets, after which nobody goes by what they remember. */
const altering = <T>(ctx: Ctx, work: (tx: Tx, vault: Vault) => Promise<T>): Promise<T> =>
  sealing(ctx, async (tx, vault) => {
    const result = await work(tx, vault)
    await touch(tx, 'connections')
    return result
  }).finally(() => forget(ctx, 'connections'))

const addressesIn = ({ url, apiUrl }: Row['metadata']) => [
  { path: '/metadata/url', url: url as string | undefined },
  { path: '/metadata/apiUrl', url: apiUrl as string | undefined },
]

/** The connection, if it still is what the caller has read. */
async function current(db: Pick<Db, 'select'>, id: string, { request }: Answer) {
  const row = await found(db, id)
  refuseStale(request, etagOf(row.version, row.updated))
  return row
}

function told(row: Row, answer: Answer): Connection {
  giveEtag(answer, etagOf(row.version, row.updated))
  return shown(row)
}

const shown = ({ version: _, ...row }: Row): Connection => row
