import { hostname } from 'node:os'
import { join } from 'node:path'
import { config } from '../../config'
import { HOUR_MS, MINUTE_MS } from '../../core/clock'
import type { RunQuery } from '../../storage/port'
import { executeOnce, queryDatabaseFile } from '../../tenancy/databases'
import { locationOf, type TenantRecord } from '../../tenancy/placement'

const HOLD_MS = HOUR_MS
const RENEW_AFTER_MS = 10 * MINUTE_MS
const [FIRST_NAME, NAME_AFTER_LAST] = ['content-copy ', 'content-copy!'] // "!" is the character after the blank

/** A claim on all contents of a tenant: until it is disposed of, none of them is removed. */
export type ContentHold = AsyncDisposable & {
  /** Prolongs the claim when that is due. It must not be called while the file of the database is being copied. */
  renew(): Promise<void>
}

/**
 * Keeps the contents of a tenant's files from being removed while they are copied. A claim is a row beside the leases,
 * because a job of the server removes contents, and a process of its own copies them. One of a process that died ends
 * after an hour.
 */
export async function holdContents(entry: TenantRecord): Promise<ContentHold> {
  const place = locationOf(entry)
  const name = `${FIRST_NAME}${Bun.randomUUIDv7()}`
  const insert = `insert into leases (name, holder, token, expires) values (?, ?, 1, (select now from clock) + ?)
    on conflict ("name") do update set expires = excluded.expires`
  const hold = () => executeOnce(place, insert, [name, `${hostname()} ${process.pid}`, HOLD_MS])
  // A write of another process makes a log that is shipped begin anew, so there is none where nothing can be removed.
  if (!(await mayHaveContents(entry))) return { renew: async () => {}, [Symbol.asyncDispose]: async () => {} }
  await hold()
  let renewedAt = performance.now()
  return {
    async renew() {
      if (performance.now() < renewedAt + RENEW_AFTER_MS) return
      await hold()
      renewedAt = performance.now()
    },
    // The tenant may be deleted by now, and otherwise the claim ends by itself.
    [Symbol.asyncDispose]: () => executeOnce(place, 'delete from leases where name = ?', [name]).catch(() => {}),
  }
}

/** Contents that are stored from now on are kept for an hour anyway. */
async function mayHaveContents(entry: TenantRecord): Promise<boolean> {
  if (entry.home) return true
  const path = join(config.ATOLL_TENANTS, locationOf(entry).file)
  const has = async (sql: string) => (await queryDatabaseFile(path, sql)).length > 0
  const hasTable = await has("select 1 from sqlite_schema where name = 'file_contents'")
  return hasTable && has('select 1 from file_contents limit 1')
}

/** Tells whether the contents of a tenant are being copied, and forgets claims that have ended. */
export async function areContentsHeld({ query }: { query: RunQuery }): Promise<boolean> {
  const names = [FIRST_NAME, NAME_AFTER_LAST]
  await query('delete from leases where name >= ? and name < ? and expires <= (select now from clock)', names)
  return (await query('select 1 from leases where name >= ? and name < ? limit 1', names)).length > 0
}
