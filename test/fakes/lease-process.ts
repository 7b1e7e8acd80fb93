// A process that wants a lease, for tests of several at one database: `bun lease-process.ts <what> <contest as JSON>`.
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
  /** Of the lease, in ms. */
  length: number
  /** Where the database is: a folder of files, or PostgreSQL. */
  folder?: string
  url?: string
}

const WRITE_DEADLINE_MS = 1_000 // ms of a write
const COUNT_DURATION_MS = 4_000 // ms of counting

/** What is counted, and each step by itself, with the token under which it was made. */
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

/** The database of a contest, as one process sees it. */
export function openContest({ place, folder = '', url }: LeaseContest) {
  const sqlite = { driver: 'bun:sqlite', folder, synchronous: 'normal', lockTimeout: WRITE_DEADLINE_MS } as const
  const engine = url ? new Postgres({ url, deadline: WRITE_DEADLINE_MS, connections: 3 }) : new Sqlite(sqlite)
  const storage = new DatabasePool(engine, { openCount: 3, deadline: WRITE_DEADLINE_MS })
  return { storage, store: storage.getStore(place, migrations) }
}

export const readCounter = async ({ db }: Pick<Store, 'db'>) =>
  Number((await db.query('select n from counters'))[0]?.[0] ?? 0)

/** The next number is found out before the write, as by work that takes its time: only the lease keeps it right. */
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

/** As often as it takes to begin: on a busy machine a short lease may be over before that. */
async function runWithLease(
  { store, length }: OpenedContest,
  work: (held: Store & Lease) => Promise<void>,
): Promise<LeaseResult<void>> {
  let started = false
  const startWork = (held: Store & Lease) => {
    started = true
    return work(held)
  }
  for (;;) {
    const outcome = await withLease(store, 'work', startWork, { length }).catch((error) => {
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
  /** Holds the lease until it is lost, or this process is told to stop. */
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

  /** Stops itself while it holds the lease, and goes on as if nothing had been. */
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

  /** Stops itself in the midst of a write. */
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

  /** Counts as much as it can for a while; now and then it stalls for longer than its lease lasts. */
  async count({ store, length }: OpenedContest) {
    const result: Record<string, number> = { written: 0, refused: 0 }
    const until = performance.now() + COUNT_DURATION_MS
    let stepCount = 0
    const work = async (held: Store & Lease) => {
      for (let left = 5; left && !held.signal.aborted; left--) {
        const n = (await readCounter(held)) + 1
        if (++stepCount % 15 === 3) Bun.sleepSync(3 * length)
        const wrote = await outcomeOf(incrementCounter(held, n))
        result[wrote] = (result[wrote] ?? 0) + 1
      }
    }
    while (performance.now() < until) {
      await runWithLease({ store, length }, work)
      await Bun.sleep(Math.random() * 10)
    }
    printJson(result)
  },
}
type OpenedContest = { store: Store; length: number }
export type Role = keyof typeof contestants

if (import.meta.main) {
  const [, , role, json = ''] = process.argv
  const contest: LeaseContest = JSON.parse(json)
  const { storage, store } = openContest(contest)
  await contestants[role as Role]({ store, length: contest.length })
  await storage.close()
}
