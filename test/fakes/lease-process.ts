// A process that contends for a lease, for tests of several at one database: `bun lease-process.ts <role> <contest as
// JSON>`.
import { writeSync } from 'node:fs'
import { tenantMigrations } from '../../migrations'
import { LeaseLost } from '../../src/jobs/leases'
import { type Lease, type LeaseResult, releaseAllLeases, withLease } from '../../src/jobs/with-lease'
import { Postgres } from '../../src/storage/engines/postgres/engine'
import { Sqlite } from '../../src/storage/engines/sqlite/engine'
import { Busy } from '../../src/storage/errors'
import { DatabasePool } from '../../src/storage/pool'
import type { DatabaseLocation, Migrations, Store } from '../../src/storage/port'

export type LeaseContest = {
  place: DatabaseLocation
  /** How long a silent process keeps the lease. */
  ttlMs: number
  /** The folder of the SQLite files; with `url` the database is on PostgreSQL. */
  folder?: string
  url?: string
}

const WRITE_DEADLINE_MS = 1_000
const COUNT_DURATION_MS = 4_000

/** A counter, and a row for each step with the token of the lease under which it was made. */
const migrations: Migrations = {
  sqlite: [
    ...tenantMigrations.sqlite,
    `create table counters (n integer not null) strict; insert into counters values (0);
     create table steps (id text not null primary key, n integer not null, token integer not null) strict`,
  ],
  postgres: [
    ...tenantMigrations.postgres,
    `create table counters (tenant_id uuid primary key default current_setting('app.tenant')::uuid, n bigint not null);
     create table steps (tenant_id uuid not null default current_setting('app.tenant')::uuid,
       id text collate "C" not null, n bigint not null, token bigint not null, primary key (tenant_id, id))`,
  ],
}

/** Opens the database of a contest for one process. */
export function openContest({ place, folder = '', url }: LeaseContest) {
  const sqlite = { driver: 'bun:sqlite', folder, synchronous: 'normal', lockTimeout: WRITE_DEADLINE_MS } as const
  const engine = url ? new Postgres({ url, deadline: WRITE_DEADLINE_MS, connections: 3 }) : new Sqlite(sqlite)
  const storage = new DatabasePool(engine, { openCount: 3, deadline: WRITE_DEADLINE_MS })
  return { storage, store: storage.getStore(place, migrations) }
}

export const readCounter = async ({ db }: Pick<Store, 'db'>) =>
  Number((await db.query('select n from counters'))[0]?.[0] ?? 0)

/** The next number is computed before the write, as by slow work, so only the lease keeps the count correct. */
export const incrementCounter = (
  { write, token }: Pick<Store & Lease, 'write' | 'token'>,
  n: number,
  beforeCommit = () => {},
) =>
  write(async (tx) => {
    await tx.query('update counters set n = ?', [n])
    await tx.query('insert into steps (id, n, token) values (?, ?, ?)', [crypto.randomUUID(), n, token])
    beforeCommit()
  })

/** Repeats until the work has started: on a busy machine a short lease may be over before. */
async function runWithLease(
  { store, ttlMs }: OpenedContest,
  work: (held: Store & Lease) => Promise<void>,
): Promise<LeaseResult<void>> {
  let started = false
  const startWork = (held: Store & Lease) => {
    started = true
    return work(held)
  }
  for (;;) {
    const outcome = await withLease(store, 'work', startWork, { ttlMs }).catch((error) => {
      if (!(error instanceof Busy)) throw error
    })
    if (outcome && started) return outcome
    await Bun.sleep(Math.random() * 10)
  }
}

const printJson = (what: object) => writeSync(1, `${JSON.stringify(what)}\n`)
const stopMyself = () => process.kill(process.pid, 'SIGSTOP')
const outcomeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'written',
    (error) => (error instanceof LeaseLost ? 'refused' : error instanceof Busy ? 'busy' : String(error)),
  )

const contestants = {
  /** Holds the lease until it is lost, or this process gets SIGTERM. */
  async hold(entered: OpenedContest) {
    process.on('SIGTERM', () => releaseAllLeases())
    const hold = async ({ token, signal }: Lease) => {
      printJson({ token })
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }
    const alive = setInterval(() => {}, 1_000)
    printJson(await runWithLease(entered, hold))
    clearInterval(alive)
  },

  /** Suspends itself while it holds the lease, and continues as if nothing had happened. */
  async sleep(entered: OpenedContest) {
    const work = async (held: Store & Lease) => {
      printJson({ token: held.token })
      const n = (await readCounter(held)) + 1
      stopMyself()
      const wrote = await outcomeOf(incrementCounter(held, n))
      printJson({ wrote, aborted: held.signal.aborted })
    }
    printJson(await runWithLease(entered, work))
  },

  /** Suspends itself in the middle of a write. */
  async sleepWriting(entered: OpenedContest) {
    const work = async (held: Store & Lease) => {
      const n = (await readCounter(held)) + 1
      printJson({ token: held.token })
      let slept = false
      const late = () => {
        if (!slept) stopMyself()
        slept = true
      }
      printJson({ wrote: await outcomeOf(incrementCounter(held, n, late)) })
    }
    printJson(await runWithLease(entered, work))
  },

  /** Counts as fast as it can for a while. Sometimes it stalls for longer than its lease lasts. */
  async count({ store, ttlMs }: OpenedContest) {
    const result: Record<string, number> = { written: 0, refused: 0 }
    const until = performance.now() + COUNT_DURATION_MS
    let stepCount = 0
    const work = async (held: Store & Lease) => {
      for (let left = 5; left && !held.signal.aborted; left--) {
        const n = (await readCounter(held)) + 1
        if (++stepCount % 15 === 3) Bun.sleepSync(3 * ttlMs)
        const wrote = await outcomeOf(incrementCounter(held, n))
        result[wrote] = (result[wrote] ?? 0) + 1
      }
    }
    while (performance.now() < until) {
      await runWithLease({ store, ttlMs }, work)
      await Bun.sleep(Math.random() * 10)
    }
    printJson(result)
  },
}
type OpenedContest = { store: Store; ttlMs: number }
export type Role = keyof typeof contestants

if (import.meta.main) {
  const [, , role, json = ''] = process.argv
  const contest: LeaseContest = JSON.parse(json)
  const { storage, store } = openContest(contest)
  await contestants[role as Role]({ store, ttlMs: contest.ttlMs })
  await storage.close()
}
