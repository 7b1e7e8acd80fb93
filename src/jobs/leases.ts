import { hostname } from 'node:os'
import { and, eq, isNotNull, sql } from 'drizzle-orm'
import type { Db, Store } from '../storage/port'
import { leases } from './tables'

/** Somebody else has the lease, or may have it by now: what its holder was about to do must not be done. */
export class LeaseLost extends Error {
  constructor(name: string) {
    super(`The lease "${name}" was lost.`)
  }
}

const LEASE_HOLDER = `${hostname()} ${process.pid}`

// The clocks of nodes need not agree, and one that a test moves steals nothing: only the database says what time it is.
const databaseClock = sql`(select now from clock)`
const clockPlus = (ms: number) => sql`${databaseClock} + ${ms}`
const isHeldBy = (name: string, token: number) =>
  and(eq(leases.name, name), eq(leases.token, token), isNotNull(leases.holder))

/**
 * Until when a lease is ours for certain, in ms of this process's stopwatch (`performance.now`). It is begun before the
 * database looks at its clock, so our time is up before the database gives the lease away.
 */
type LocalDeadline = number

/**
 * Takes a lease that is free or has expired, for `length` ms. Answers its token, which is greater than any before; or else
 * how long it is not to be had, in ms, unless it is released earlier.
 */
export async function acquireLease(
  { db, write }: Store,
  name: string,
  ttl: number,
): Promise<{ token: number; until: LocalDeadline } | { left: number }> {
  for (;;) {
    // Looking comes first: those who wait for a lease don't stand in the way of those who write.
    const left = await remainingTtl(db, name)
    if (left > 0) return { left }
    const ours = { holder: LEASE_HOLDER, expires: clockPlus(ttl) }
    const acquired = await write(async (tx) => {
      const until = performance.now() + ttl
      const row = await tx
        .insert(leases)
        .values({ name, token: 1, ...ours })
        .onConflictDoUpdate({
          target: leases.name,
          set: { token: sql`${leases.token} + 1`, ...ours },
          setWhere: sql`${leases.expires} <= ${databaseClock}`,
        })
        .returning({ token: leases.token })
        .get()
      return row && { token: row.token, until }
    })
    if (acquired) return acquired
  }
}

/** Keeps a lease for `length` ms from now; answers nothing when it was lost. */
export const renewLease = (
  { write }: Store,
  name: string,
  token: number,
  ttl: number,
): Promise<LocalDeadline | undefined> =>
  write(async (tx) => {
    const until = performance.now() + ttl
    const renewed = await tx
      .update(leases)
      .set({ expires: clockPlus(ttl) })
      .where(isHeldBy(name, token))
      .returning({ token: leases.token })
      .get()
    return renewed && until
  })

/** Frees a lease, at once or after a `rest` in ms; false when it was lost before. */
export async function releaseLease({ write }: Store, name: string, token: number, cooldown = 0): Promise<boolean> {
  const freed = await write((tx) =>
    tx
      .update(leases)
      .set({ holder: null, expires: clockPlus(cooldown) })
      .where(isHeldBy(name, token))
      .returning({ token: leases.token })
      .get(),
  )
  return !!freed
}

/**
 * Whether nobody took the lease after this token's holder. Asked in a write it stays so until the commit, for that is the
 * tenant's only writer; however long its process slept before, and whatever any clock says.
 */
export const isLeaseHeld = async (db: Db, name: string, token: number): Promise<boolean> =>
  (await db.select({ token: leases.token }).from(leases).where(isHeldBy(name, token))).length > 0

async function remainingTtl(db: Db, name: string): Promise<number> {
  const [row] = await db
    .select({ left: sql<number>`${leases.expires} - ${databaseClock}` })
    .from(leases)
    .where(eq(leases.name, name))
  return row?.left ?? 0
}
