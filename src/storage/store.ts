import { drizzle } from 'drizzle-orm/sqlite-proxy'
import { report } from '../core/log'
import { Problem } from '../core/problem'
import { turn } from '../core/turn'
import { Busy } from './errors'
import type {
  Afterwards,
  Ask,
  Asking,
  Database,
  Db,
  Engine,
  Lastly,
  Manner,
  Migrations,
  Place,
  Store,
  Tx,
} from './port'
import { Writer } from './writer'

type Opened = { database: Database; writer: Writer }
type Lease = {
  key: string
  /** It neither counts nor is closed for others. */
  pinned: boolean
  /** Whether it is among those of which only so many may be open. */
  hasSlot: boolean
  ready: Promise<Opened>
  opened?: Opened
  users: number
  /** When it was used last, among all uses. */
  used: number
  /** The last use at the last look, and at its rest. */
  looked?: number
  rested?: number
  /** To be called when the last user has gone. */
  idle?: () => void
}

type Told = (error: unknown) => Promise<unknown>
const unchanged: Told = async (error) => error

const REST = 10_000 // ms without a use

/**
 * Databases are opened when they are asked something. What nobody asks gives back its memory, and where too many are open,
 * the least recently used are closed.
 */
export class Storage {
  #leases = new Map<string, Lease>()
  #uses = 0
  #retiring = new Set<Promise<void>>()
  /** How many of those that need a slot are open, being opened or being closed. */
  #held = 0
  /** Those who wait until they may open one more. */
  #waiting: PromiseWithResolvers<void>[] = []
  #looking?: ReturnType<typeof setInterval>

  constructor(
    private engine: Engine,
    private limits: { open: number; deadline: number },
  ) {}

  /**
   * Costs nothing until it is asked something, and stays good after its database was closed. What is thrown then passes
   * through `told`, who may know more about it.
   */
  store(place: Place, migrations: Migrations, told: Told = unchanged): Store {
    const key = keyOf(place)
    const use = <T>(work: (opened: Opened) => Promise<T>) =>
      this.#use(this.#leases.get(key) ?? this.#lease(key, place, migrations), told, work)
    const ask: Ask = (sql, params) => use(({ database }) => database.ask(sql, params))
    const read = { ...db(ask), comparing: this.engine.comparing?.(place) ?? 'javascript' }
    return {
      db: read,
      heard: () => this.engine.heard?.(place) ?? 0,
      write: (work, manner) => use(({ writer }) => written(writer, read, work, manner)),
    }
  }

  /** How many databases are open now, apart from pinned ones. */
  get open() {
    return this.#leases.values().reduce((count, { pinned }) => (pinned ? count : count + 1), 0)
  }

  isOpen(place: Place): boolean {
    return !!this.#leases.get(keyOf(place))?.opened
  }

  /** Closes a database as soon as nobody uses it; who asks again opens whatever is at its place then. */
  async release(place: Place) {
    const lease = this.#leases.get(keyOf(place))
    if (!lease) return
    const closing = this.#retire(lease)
    if (lease.users) closing.catch(failed)
    else await closing
  }

  /** All that is there, for copying it. It is closed by whoever asked for it. */
  bulk(place: Place, migrations: Migrations) {
    return this.engine.bulk(place, migrations)
  }

  /** Serves what is there no more; nothing of it is removed. */
  async end(place: Place, migrations: Migrations) {
    await this.engine.end?.(place, migrations)
    await this.release(place)
  }

  /** What was not used since the last look gives back its memory, once. */
  rest() {
    for (const lease of this.#leases.values()) {
      if (lease.users || lease.rested === lease.used) continue
      if (lease.looked === lease.used) {
        lease.opened?.database.rest?.()
        lease.rested = lease.used
      }
      lease.looked = lease.used
    }
  }

  /** Closes everything, what is in use as soon as it isn't any more. */
  async close() {
    clearInterval(this.#looking)
    for (const lease of this.#leases.values()) this.#retire(lease).catch(failed)
    while (this.#retiring.size) {
      await Promise.allSettled(this.#retiring)
      await Bun.sleep(1)
    }
    await this.engine.close()
  }

  /** What is in use is never closed. */
  async #use<T>(lease: Lease, told: Told, work: (opened: Opened) => Promise<T>) {
    lease.users++
    lease.used = ++this.#uses
    try {
      return await work(lease.opened ?? (await lease.ready))
    } catch (error) {
      if (lease.opened?.database.isBroken?.()) this.#reopen(lease)
      throw await told(error)
    } finally {
      lease.users--
      if (!lease.users) lease.idle?.()
      if (this.#leases.size > this.limits.open) this.#trim()
    }
  }

  /** Who asks next opens it anew. */
  #reopen(lease: Lease) {
    if (this.#leases.get(lease.key) === lease) this.#retire(lease).catch(failed)
  }

  #lease(key: string, place: Place, migrations: Migrations): Lease {
    const { pinned = false } = place
    const lease: Lease = {
      key,
      pinned,
      hasSlot: needsSlot(place),
      ready: this.#open(place, migrations),
      users: 0,
      used: 0,
    }
    lease.ready.then(
      (opened) => Object.assign(lease, { opened }),
      () => {
        if (this.#leases.get(key) === lease) this.#leases.delete(key)
      },
    )
    this.#leases.set(key, lease)
    if (this.#leases.size > this.limits.open) this.#trim()
    this.#looking ??= setInterval(() => this.rest(), REST).unref()
    return lease
  }

  /** Nobody gets this lease any more; whoever has it may end what they do. */
  #retire(lease: Lease): Promise<void> {
    this.#leases.delete(lease.key)
    const retiring = (async () => {
      if (lease.users)
        await new Promise<void>((resolve) => {
          lease.idle = resolve
        })
      const { database } = lease.opened ?? (await lease.ready)
      await database.close().finally(() => lease.hasSlot && this.#giveBack())
    })()
    this.#retiring.add(retiring)
    return retiring.finally(() => this.#retiring.delete(retiring))
  }

  async #open(place: Place, migrations: Migrations): Promise<Opened> {
    if (needsSlot(place)) await this.#take()
    try {
      const database = await this.engine.open(place, migrations)
      return { database, writer: new Writer(database.transaction, this.limits.deadline) }
    } catch (error) {
      if (needsSlot(place)) this.#giveBack()
      throw error
    }
  }

  /** Waits until one more may be open. @throws Busy when all that may be open are in use for too long */
  async #take() {
    // At least one, or nothing could be asked.
    if (this.#held < Math.max(1, this.limits.open)) {
      this.#held++
      return
    }
    const turn = Promise.withResolvers<void>()
    this.#waiting.push(turn)
    const timer = setTimeout(() => {
      this.#waiting = this.#waiting.filter((one) => one !== turn)
      turn.reject(new Busy('All databases that may be open are in use.'))
    }, this.limits.deadline)
    await turn.promise.finally(() => clearTimeout(timer))
  }

  #giveBack() {
    const next = this.#waiting.shift()
    if (next) next.resolve()
    else this.#held--
  }

  #trim() {
    const leases = [...this.#leases.values()].filter(({ pinned }) => !pinned)
    const idle = leases.filter(({ users, opened }) => opened && !users).sort((one, other) => one.used - other.used)
    for (const lease of idle.slice(0, Math.max(0, leases.length - this.limits.open))) this.#retire(lease).catch(failed)
  }
}

/** Files are bounded by descriptors; what a PostgreSQL keeps shares its few connections. */
const needsSlot = ({ pinned, cluster }: Place) => !pinned && !cluster

const keyOf = ({ file, identity, cluster, bucket }: Place) => `${file} ${identity} ${cluster} ${bucket}`
const failed = (error: unknown) => report('DATABASE_NOT_CLOSED', { cause: error })

async function written<T>(writer: Writer, read: Db, work: (tx: Tx) => Promise<T>, manner?: Manner): Promise<T> {
  let acts: ((db: Db) => void)[] = []
  const result = await writer.write((asking) => {
    // The engine may begin anew, and then so does this.
    acts = []
    return work(db(asking.ask, { ...asking, afterwards: (act) => void acts.push(act) }))
  }, manner)
  for (const act of acts) act(read)
  return result
}

type Writing = Pick<Asking, 'each'> & { lastly: Lastly; afterwards: Afterwards }

function readOnly(): never {
  throw new Error('Only a transaction can write.')
}
const nothing: Writing = { each: async () => readOnly(), lastly: readOnly, afterwards: readOnly }

/** Drizzle over `ask`, made when it is first needed: most of what is asked often needs only `ask`. */
function db(ask: Ask, { each, lastly, afterwards }: Writing = nothing): Tx {
  let made: ReturnType<typeof orm> | undefined
  const drizzled = () => {
    made ??= orm(ask)
    return made
  }
  return {
    ask: (sql, params) => (params?.some(unkept) ? Promise.reject(nul()) : ask(sql, params)),
    each: (sql, rows) => (rows.some((row) => row.some(unkept)) ? Promise.reject(nul()) : each(sql, rows)),
    lastly,
    afterwards,
    comparing: 'javascript',
    pause: turn,
    select: ((fields: never) => drizzled().select(fields)) as unknown as Tx['select'],
    selectDistinct: ((fields: never) => drizzled().selectDistinct(fields)) as unknown as Tx['selectDistinct'],
    $count: (...of) => drizzled().$count(...of),
    insert: (table) => drizzled().insert(table),
    update: (table) => drizzled().update(table),
    delete: (table) => drizzled().delete(table),
  }
}

/** Builds statements, and asks none. */
export const builder: Tx = db(() => Promise.reject(new Error('This only builds statements.')))

const orm = (ask: Ask) =>
  drizzle(async (sql, params, method) => {
    if (params.some(unkept)) throw nul()
    const rows = await ask(sql, params)
    return { rows: method === 'get' ? rows[0]! : rows }
  })

// PostgreSQL cannot keep it, so no engine does.
const unkept = (value: unknown) => typeof value === 'string' && value.includes('\0')
const nul = () => {
  const message = 'Text must not contain the character U+0000.'
  return new Problem(400, 'INVALID_INPUT', message, { details: [{ path: '', message }] })
}

/** Statements that are asked often are built once for each store. */
export function prepared<Statements>(prepare: (db: Db) => Statements) {
  const known = new WeakMap<Db, Statements>()
  return (asked: Db): Statements => {
    const db = asked.origin ?? asked
    const statements = known.get(db) ?? prepare(db)
    known.set(db, statements)
    return statements
  }
}
