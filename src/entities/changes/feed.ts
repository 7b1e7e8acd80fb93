import { now } from '../../core/clock'
import { report } from '../../core/log'
import { Problem } from '../../core/problem'
import { turn } from '../../core/turn'
import type { Db } from '../../storage/port'
import { costlyWork } from '../../tenancy/fair-queue'
import { recall } from '../../tenancy/memory'
import type { Tenant } from '../../tenancy/tenants'
import { Change } from './change'
import { AT_ONCE, changesAfter, hearOf, lastOf, listening, RENEWAL } from './log'

// How many listeners are woken in one turn of the event loop: as many as take so many ms.
const GROUP_TIME = 4
const MIN_GROUP = 5
const MAX_GROUP = 200

/** Who is told of a feed's changes. */
export type Ear = {
  /** There may be something new. */
  wake(): void
  /** Once a second. */
  tick(): void
  end(): void
}

/** What happened after a number, as far as `upto`; after `since` all of it is there. */
export type Page = { since: number; last: number; upto: number; changes: Change[] }

/**
 * The latest changes of a blueprint, read once for all of this process who listen. Who is further behind reads them from
 * the database by themselves.
 */
export class Feed {
  #ears = new Set<Ear>()
  #recent: Change[] = []
  #from: number
  #upto: number
  #reading = false
  #again = false
  #renewed = now()
  #group = 50
  #deaf: () => void

  constructor(
    private tenant: Tenant,
    private blueprint: string,
    last: number,
  ) {
    this.#from = last
    this.#upto = last
    this.#deaf = hearOf(tenant.db, blueprint, () => this.#read())
  }

  /** Has an ear told of what happens, until the returned function is called. */
  join(ear: Ear): () => void {
    this.#ears.add(ear)
    return () => {
      this.#ears.delete(ear)
      if (this.#ears.size) return
      this.#deaf()
      leave(this.tenant, this.blueprint, this)
    }
  }

  /** Nothing when they are not kept any more. */
  async after(number: number): Promise<Page | undefined> {
    if (number < this.#from) return pageOf(this.tenant.db, this.blueprint, number)
    const changes = this.#recent.slice(this.#recent.findLastIndex((one) => one.number <= number) + 1)
    return { since: this.#from, last: this.#upto, upto: this.#upto, changes }
  }

  /** Looks whether there is more, up to the tenant's `last` change. */
  async tick(last: number) {
    if (last > this.#upto) this.#read()
    await this.#each((ear) => ear.tick())
    if (now() - this.#renewed < RENEWAL) return
    this.#renewed = now()
    await listening(this.tenant, this.blueprint)
  }

  end() {
    for (const ear of this.#ears) ear.end()
  }

  /** Those who ask for it while it is being read have it read once more. */
  async #read() {
    this.#again = true
    if (this.#reading) return
    this.#reading = true
    try {
      while (this.#again) {
        this.#again = false
        await this.#readOn()
      }
    } catch (error) {
      failed(error) // the next tick tries again
    } finally {
      this.#reading = false
    }
  }

  async #readOn() {
    for (let left = true; left && this.#ears.size; ) {
      const page = await pageOf(this.tenant.db, this.blueprint, this.#upto)
      if (!page) return this.end()
      const { since, last, upto, changes } = page
      left = upto < last
      if (since > this.#upto) {
        // They were removed before we read them: everybody finds out by themselves.
        this.#recent = []
        this.#from = since
        this.#upto = since
      } else {
        this.#from = Math.max(this.#from, upto - AT_ONCE)
        this.#recent = [...this.#recent, ...changes].filter(({ number }) => number > this.#from)
        this.#upto = upto
      }
      await this.#each((ear) => ear.wake())
    }
  }

  /**
   * Thousands would keep all others waiting: they are woken a group after the other, each a slice of the tenant's costly
   * work, and the smaller the more a listener takes.
   */
  async #each(work: (ear: Ear) => void) {
    const payer = { tenant: this.tenant.tenant, caller: 'changes' }
    for (let left = [...this.#ears]; left.length; ) {
      const some = left.slice(0, this.#group)
      left = left.slice(this.#group)
      const wake = async () => {
        const began = performance.now()
        for (const ear of some) if (this.#ears.has(ear)) work(ear)
        // What they do is done when this is over.
        await turn()
        const possible = Math.floor((some.length * GROUP_TIME) / Math.max(performance.now() - began, 0.1))
        this.#group = Math.max(MIN_GROUP, Math.min(MAX_GROUP, possible, 2 * this.#group))
      }
      await (left.length ? costlyWork.run(payer, wake, { whole: true }) : wake())
    }
  }
}

async function pageOf(db: Db, blueprint: string, number: number): Promise<Page | undefined> {
  const page = await changesAfter(db, blueprint, number)
  return page && { ...page, changes: page.changes.map((row) => new Change(row)) }
}

/** A database that is busy, or gone, is asked again; anything else somebody should know of. */
const failed = (error: unknown) => {
  if (!(error instanceof Problem)) report('CHANGES_NOT_READ', { cause: error })
}

type House = { tenant: Tenant; feeds: Map<string, Feed>; heard: number; looking: boolean }
const houses = new Map<Db, House>()

/** The feed of a blueprint, made where there is none to begin after number `last`. */
export function feedOf(tenant: Tenant, blueprint: string, last: number): Feed {
  const house = houses.get(tenant.db) ?? { tenant, feeds: new Map(), heard: tenant.heard(), looking: false }
  houses.set(tenant.db, house)
  const feed = house.feeds.get(blueprint) ?? new Feed(tenant, blueprint, last)
  house.feeds.set(blueprint, feed)
  watch()
  return feed
}

function leave({ db }: Tenant, blueprint: string, feed: Feed) {
  const house = houses.get(db)
  if (house?.feeds.get(blueprint) !== feed) return
  house.feeds.delete(blueprint)
  if (!house.feeds.size) houses.delete(db)
}

/** Ends all streams of this process. */
export function endAll() {
  for (const { feeds } of houses.values()) for (const feed of feeds.values()) feed.end()
}

const PAUSE = 100 // ms between two questions whether another process was heard
const SECOND = 1_000 // ms; as long as others' changes may go unnoticed where nothing is heard
let watching = false

/** As long as somebody listens. */
async function watch() {
  if (watching) return
  watching = true
  for (let looked = performance.now(); houses.size; await pause()) {
    const due = performance.now() - looked >= SECOND
    if (due) looked = performance.now()
    for (const house of houses.values()) {
      if (house.looking || !(due || house.tenant.heard() !== house.heard)) continue
      house.looking = true
      look(house)
        .catch(failed)
        .finally(() => {
          house.looking = false
        })
    }
  }
  watching = false
}

const pause = () => new Promise<void>((resolve) => void setTimeout(resolve, PAUSE).unref())

async function look(house: House) {
  const { tenant, feeds } = house
  house.heard = tenant.heard()
  // Where nobody can tell, listeners are asked all the same whether they may still listen: the tenant may be gone.
  const last = await lastHere(tenant).catch((error) => {
    failed(error)
    return 0
  })
  await Promise.all([...feeds.values()].map((feed) => feed.tick(last)))
}

const lastHere = async (tenant: Tenant) => recall(tenant, 'changes', 'last', () => lastOf(tenant.db))
