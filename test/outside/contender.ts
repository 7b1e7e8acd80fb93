// A process that wants a lease, for tests of several at one database: `bun contender.ts <what> <contest as JSON>`.
import { writeSync } from 'node:fs'
import { tenantMigrations } from '../../migrations'
import { holding, type Lease, type Outcome, releaseAll } from '../../src/jobs/holding'
import { LeaseLost } from '../../src/jobs/leases'
import { Postgres } from '../../src/storage/engines/postgres/engine'
import { Sqlite } from '../../src/storage/engines/sqlite/engine'
import { Busy } from '../../src/storage/errors'
import type { Migrations, Place, Store } from '../../src/storage/port'
import { Storage } from '../../src/storage/store'

export type Contest = {
  place: Place
  /** Of the lease, in ms. */
  length: number
  /** Where the database is: a folder of files, or PostgreSQL. */
  folder?: string
  url?: string
}

const DEADLINE = 1_000 // ms of a write
const BUDGET = 4_000 // ms of counting

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
export function entered({ place, folder = '', url }: Contest) {
  const sqlite = { driver: 'bun:sqlite', folder, synchronous: 'normal', patience: DEADLINE } as const
  const engine = url ? new Postgres({ url, deadline: DEADLINE, connections: 3 }) : new Sqlite(sqlite)
  const storage = new Storage(engine, { open: 3, deadline: DEADLINE })
  return { storage, store: storage.store(place, migrations) }
}

export const countOf = async ({ db }: Pick<Store, 'db'>) =>
  Number((await db.ask('select n from counters'))[0]?.[0] ?? 0)

/** The next number is found out before the write, as by work that takes its time: only the lease keeps it right. */
export const step = ({ write, token }: Pick<Store & Lease, 'write' | 'token'>, n: number, late = () => {}) =>
  write(async (tx) => {
    await tx.ask('update counters set n = ?', [n])
    await tx.ask('insert into steps (id, n, token) values (?, ?, ?)', [crypto.randomUUID(), n, token])
    late()
  })

/** As often as it takes to begin: on a busy machine a short lease may be over before that. */
async function begun({ store, length }: Entered, work: (held: Store & Lease) => Promise<void>): Promise<Outcome<void>> {
  let began = false
  const begin = (held: Store & Lease) => {
    began = true
    return work(held)
  }
  for (;;) {
    const outcome = await holding(store, 'work', begin, { length }).catch((error) => {
      if (!(error instanceof Busy)) throw error
    })
    if (outcome && began) return outcome
    await Bun.sleep(Math.random() * 10)
  }
}

const tell = (what: object) => writeSync(1, `${JSON.stringify(what)}\n`)
const stopMyself = () => process.kill(process.pid, 'SIGSTOP')
const told = (work: Promise<unknown>) =>
  work.then(
    () => 'written',
    (error) => (error instanceof LeaseLost ? 'refused' : error instanceof Busy ? 'busy' : String(error)),
  )

const roles = {
  /** Holds the lease until it is lost, or this process is told to stop. */
  async hold(entered: Entered) {
    process.on('SIGTERM', () => releaseAll())
    const hold = async ({ token, signal }: Lease) => {
      tell({ token })
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    }
    const alive = setInterval(() => {}, 1_000)
    tell(await begun(entered, hold))
    clearInterval(alive)
  },

  /** Stops itself while it holds the lease, and goes on as if nothing had been. */
  async sleep(entered: Entered) {
    const work = async (held: Store & Lease) => {
      tell({ token: held.token })
      const n = (await countOf(held)) + 1
      stopMyself()
      const wrote = await told(step(held, n))
      tell({ wrote, aborted: held.signal.aborted })
    }
    tell(await begun(entered, work))
  },

  /** Stops itself in the midst of a write. */
  async sleepWriting(entered: Entered) {
    const work = async (held: Store & Lease) => {
      const n = (await countOf(held)) + 1
      tell({ token: held.token })
      let slept = false
      const late = () => {
        if (!slept) stopMyself()
        slept = true
      }
      tell({ wrote: await told(step(held, n, late)) })
    }
    tell(await begun(entered, work))
  },

  /** Counts as much as it can for a while; now and then it stalls for longer than its lease lasts. */
  async count({ store, length }: Entered) {
    const result: Record<string, number> = { written: 0, refused: 0 }
    const until = performance.now() + BUDGET
    let made = 0
    const work = async (held: Store & Lease) => {
      for (let left = 5; left && !held.signal.aborted; left--) {
        const n = (await countOf(held)) + 1
        if (++made % 15 === 3) Bun.sleepSync(3 * length)
        const wrote = await told(step(held, n))
        result[wrote] = (result[wrote] ?? 0) + 1
      }
    }
    while (performance.now() < until) {
      await begun({ store, length }, work)
      await Bun.sleep(Math.random() * 10)
    }
    tell(result)
  },
}
type Entered = { store: Store; length: number }
export type Role = keyof typeof roles

if (import.meta.main) {
  const [, , role, json = ''] = process.argv
  const contest: Contest = JSON.parse(json)
  const { storage, store } = entered(contest)
  await roles[role as Role]({ store, length: contest.length })
  await storage.close()
}
