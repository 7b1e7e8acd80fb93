import { hostname } from 'node:os'
import { and, eq, isNotNull, sql } from 'drizzle-orm'
import type { Db, Store } from '../storage/port'
import { leases } from './tables'

/** Thrown when another process has the lease, or may have it by now. The holder must not go on with its work. */
export class LeaseLost extends Error {
  constructor(name: string) {
    super(`The lease "${name}" was lost.`)
  }
}

const LEASE_HOLDER = `${hostname()} ${process.pid}`

// Only the database's clock counts: the clocks of nodes may differ, and moving a clock in a test must not steal a
// lease.
const databaseClock = sql`(select now from clock)`
const clockPlus = (ms: number) => sql`${databaseClock} + ${ms}`
const isHeldBy = (name: string, token: number) =>
  and(eq(leases.name, name), eq(leases.token, token), isNotNull(leases.holder))

/**
 * Until when a lease is certainly ours, in ms of `performance.now()`. It is measured from before the database reads its
 * clock, so it ends before the database gives the lease away.
 */
type LocalDeadline = number

/**
 * Acquires a lease that is free or has expired, for `ttlMs`. Returns its token, which is greater than any before, or
 * else the ms for which the lease stays taken, unless it is released earlier. One that would be taken for longer than
 * `maxMs` dates from before the database's clock was set back, and counts as expired.
 */
export async function acquireLease(
  { db, write }: Store,
  name: string,
  ttlMs: number,
  maxMs = Number.MAX_SAFE_INTEGER,
): Promise<{ token: number; until: LocalDeadline } | { left: number }> {
  for (;;) {
    // The lease is read first, so that processes that wait for it do not delay writes.
    const left = await remainingTtl(db, name)
    if (left > 0 && left <= maxMs) return { left }
    const ours = { holder: LEASE_HOLDER, expires: clockPlus(ttlMs) }
    const acquired = await write(async (tx) => {
      const until = performance.now() + ttlMs
      const row = await tx
        .insert(leases)
        .values({ name, token: 1, ...ours })
        .onConflictDoUpdate({
          target: leases.name,
          set: { token: sql`${leases.token} + 1`, ...ours },
          setWhere: sql`${leases.expires} <= ${databaseClock} or ${leases.expires} - ${databaseClock} > ${maxMs}`,
        })
        .returning({ token: leases.token })
        .get()
      return row && { token: row.token, until }
    })
    if (acquired) return acquired
  }
}

/** Renews a lease for `ttlMs` from now. Returns until when it is ours, or undefined when it was lost. */
export const renewLease = (
  { write }: Store,
  name: string,
  token: number,
  ttlMs: number,
): Promise<LocalDeadline | undefined> =>
  write(async (tx) => {
    const until = performance.now() + ttlMs
    const renewed = await tx
      .update(leases)
      .set({ expires: clockPlus(ttlMs) })
      .where(isHeldBy(name, token))
      .returning({ token: leases.token })
      .get()
    return renewed && until
  })

/** Releases a lease, at once or after `cooldownMs`. Returns false when it was lost before. */
export async function releaseLease({ write }: Store, name: string, token: number, cooldownMs = 0): Promise<boolean> {
  const freed = await write((tx) =>
    tx
      .update(leases)
      .set({ holder: null, expires: clockPlus(cooldownMs) })
      .where(isHeldBy(name, token))
      .returning({ token: leases.token })
      .get(),
  )
  return !!freed
}

/**
 * Tells whether a lease still belongs to the holder of this token. In a write the result holds until the commit,
 * because the write is the tenant's only one, however long this process was suspended before and whatever any clock
 * says.
 */
export const isLeaseHeld = async (db: Db, name: string, token: number): Promise<boolean> =>
  // As text, because background work asks before each of its many small writes.
  (await db.query('select 1 from leases where name = ? and token = ? and holder is not null', [name, token])).length > 0

async function remainingTtl(db: Db, name: string): Promise<number> {
  const [row] = await db
    .select({ left: sql<number>`${leases.expires} - ${databaseClock}` })
    .from(leases)
    .where(eq(leases.name, name))
  return row?.left ?? 0
}
