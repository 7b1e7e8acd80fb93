import { hostname } from 'node:os'
import { and, eq, isNotNull, sql } from 'drizzle-orm'
import type { Db, Store } from '../storage/port'
import { leases } from './tables'

/** Somebody else has the lease, or may have it by now: what its holder was about to do must not be done. */
export class LeaseLost extends Error {
  constructor(name: string) {
    super(`The lease "${name}" is not ours any more.`)
  }
}

const HOLDER = `${hostname()} ${process.pid}`

// The clocks of nodes need not agree, and one that a test moves steals nothing: only the database says what time it is.
const clock = sql`(select now from clock)`
const after = (ms: number) => sql`${clock} + ${ms}`
const held = (name: string, token: number) =>
  and(eq(leases.name, name), eq(leases.token, token), isNotNull(leases.holder))

/**
 * Until when a lease is ours for certain, in ms of this process's stopwatch (`performance.now`). It is begun before the
 * database looks at its clock, so our time is up before the database gives the lease away.
 */
type Until = number

/**
 * Takes a lease that is free or has expired, for `length` ms. Answers its token, which is greater than any before; or else
 * how long it is not to be had, in ms, unless it is released earlier.
 */
export async function take(
  { db, write }: Store,
  name: string,
  length: number,
): Promise<{ token: number; until: Until } | { left: number }> {
  for (;;) {
    // Looking comes first: those who wait for a lease don't stand in the way of those who write.
    const left = await remaining(db, name)
    if (left > 0) return { left }
    const ours = { holder: HOLDER, expires: after(length) }
    const taken = await write(async (tx) => {
      const until = performance.now() + length
      const row = await tx
        .insert(leases)
        .values({ name, token: 1, ...ours })
        .onConflictDoUpdate({
          target: leases.name,
          set: { token: sql`${leases.token} + 1`, ...ours },
          setWhere: sql`${leases.expires} <= ${clock}`,
        })
        .returning({ token: leases.token })
        .get()
      return row && { token: row.token, until }
    })
    if (taken) return taken
  }
}

/** Keeps a lease for `length` ms from now; answers nothing when it was lost. */
export const renew = ({ write }: Store, name: string, token: number, length: number): Promise<Until | undefined> =>
  write(async (tx) => {
    const until = performance.now() + length
    const kept = await tx
      .update(leases)
      .set({ expires: after(length) })
      .where(held(name, token))
      .returning({ token: leases.token })
      .get()
    return kept && until
  })

/** Frees a lease, at once or after a `rest` in ms; false when it was lost before. */
export async function release({ write }: Store, name: string, token: number, rest = 0): Promise<boolean> {
  const freed = await write((tx) =>
    tx
      .update(leases)
      .set({ holder: null, expires: after(rest) })
      .where(held(name, token))
      .returning({ token: leases.token })
      .get(),
  )
  return !!freed
}

/**
 * Whether nobody took the lease after this token's holder. Asked in a write it stays so until the commit, for that is the
 * tenant's only writer; however long its process slept before, and whatever any clock says.
 */
export const holds = async (db: Db, name: string, token: number): Promise<boolean> =>
  (await db.select({ token: leases.token }).from(leases).where(held(name, token))).length > 0

async function remaining(db: Db, name: string): Promise<number> {
  const [row] = await db
    .select({ left: sql<number>`${leases.expires} - ${clock}` })
    .from(leases)
    .where(eq(leases.name, name))
  return row?.left ?? 0
}
