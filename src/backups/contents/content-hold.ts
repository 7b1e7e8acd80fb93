import { readdir, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { HOUR_MS, MINUTE_MS } from '../../core/clock'
import { executeOnce, tenantFolder } from '../../tenancy/databases'
import { locationOf, type TenantRecord } from '../../tenancy/placement'
import type { Tenant } from '../../tenancy/tenants'

const HOLD_MS = HOUR_MS
const RENEW_AFTER_MS = 10 * MINUTE_MS
const PREFIX = 'content-copy-'
const NAME_AFTER_LAST = 'content-copy.' // "." is the character after "-"

/** A claim on all contents of a tenant: until it is disposed of, none of them is removed. */
export type ContentHold = AsyncDisposable & {
  /** Prolongs the claim when that is due. */
  renew(): Promise<void>
}

/**
 * Keeps the contents of a tenant's files from being removed while they are copied. A claim of a process that died ends
 * after an hour. It is a file beside the database, because a job of the server removes contents, a process of its own
 * copies them, and a write of that process would make a log that is shipped begin anew. In PostgreSQL it is a row beside
 * the leases.
 */
export async function holdContents(entry: TenantRecord): Promise<ContentHold> {
  const name = `${PREFIX}${Bun.randomUUIDv7()}`
  const claim = entry.home ? createLease(entry, name) : createFile(join(tenantFolder(entry.id), name))
  await claim.hold()
  let renewedAt = performance.now()
  return {
    async renew() {
      if (performance.now() < renewedAt + RENEW_AFTER_MS) return
      await claim.hold()
      renewedAt = performance.now()
    },
    // The tenant may be deleted by now, and otherwise the claim ends by itself.
    [Symbol.asyncDispose]: () => claim.release().catch(() => {}),
  }
}

type Claim = { hold(): Promise<void>; release(): Promise<void> }

function createFile(path: string): Claim {
  return {
    async hold() {
      await writeFile(path, '', { mode: 0o600 })
      await utimes(path, new Date(), new Date())
    },
    release: () => rm(path, { force: true }),
  }
}

function createLease(entry: TenantRecord, name: string): Claim {
  const place = locationOf(entry)
  const insert = `insert into leases (name, holder, token, expires) values (?, ?, 1, (select now from clock) + ?)
    on conflict ("name") do update set expires = excluded.expires`
  return {
    hold: () => executeOnce(place, insert, [name, `${hostname()} ${process.pid}`, HOLD_MS]),
    release: () => executeOnce(place, 'delete from leases where name = ?', [name]),
  }
}

/** Tells whether the contents of a tenant are being copied, and forgets claims that have ended. */
export const areContentsHeld = (tenant: Tenant): Promise<boolean> =>
  tenant.place?.cluster ? hasLease(tenant) : hasFile(tenant)

async function hasLease({ write }: Tenant): Promise<boolean> {
  const names = [PREFIX, NAME_AFTER_LAST]
  return write(async ({ query }) => {
    await query('delete from leases where name >= ? and name < ? and expires <= (select now from clock)', names)
    return (await query('select 1 from leases where name >= ? and name < ? limit 1', names)).length > 0
  })
}

async function hasFile({ tenant }: Tenant): Promise<boolean> {
  const folder = tenantFolder(tenant)
  const claims = (await readdir(folder).catch(() => [])).filter((name) => name.startsWith(PREFIX))
  const areHeld = await Promise.all(
    claims.map(async (name) => {
      const { mtimeMs } = await stat(join(folder, name)).catch(() => ({ mtimeMs: 0 }))
      const isHeld = mtimeMs > Date.now() - HOLD_MS
      if (!isHeld) await rm(join(folder, name), { force: true })
      return isHeld
    }),
  )
  return areHeld.includes(true)
}
