import { now } from '../../core/clock'
import { yieldToEventLoop } from '../../core/event-loop'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import type { Db } from '../../storage/port'
import { cached } from '../../tenancy/cache'
import { costlyWork, type WorkOwner } from '../../tenancy/fair-queue'
import type { Tenant } from '../../tenancy/tenants'
import { Change } from './change'
import { enableLog, NUMBERS_PER_READ, onCommit, RENEWAL_MS, readChangesAfter, readLastNumber } from './change-log'

// The number of consumers woken in one turn of the event loop: as many as take GROUP_MS milliseconds.
const GROUP_MS = 4
const MIN_GROUP_SIZE = 5
const MAX_GROUP_SIZE = 200

/** A consumer of a feed's changes. */
export type FeedConsumer = {
  /** Called when there may be new changes. */
  wake(): void
  /** Called about once a second. */
  tick(): void
  end(): void
}

/** The changes after a number, up to number `upto`. The log is complete after number `since`. */
export type ChangePage = { since: number; last: number; upto: number; changes: Change[] }

/**
 * The latest changes of a blueprint, read once for all consumers in this process. A consumer that is further behind
 * reads from the database itself.
 */
export class Feed {
  #consumers = new Set<FeedConsumer>()
  #recent: Change[] = []
  #from: number
  #upto: number
  #reading = false
  #readAgain = false
  #renewedAt = now()
  #groupSize = 50
  #payer: WorkOwner
  #unsubscribe: () => void

  constructor(
    private tenant: Tenant,
    private blueprint: string,
    last: number,
  ) {
    this.#from = last
    this.#upto = last
    this.#payer = { tenant: tenant.tenant, caller: 'changes' }
    this.#unsubscribe = onCommit(tenant.db, blueprint, () => this.#read())
  }

  /** Adds a consumer, until the returned function is called. */
  join(consumer: FeedConsumer): () => void {
    this.#consumers.add(consumer)
    return () => {
      this.#consumers.delete(consumer)
      if (this.#consumers.size) return
      this.#unsubscribe()
      removeFeed(this.tenant, this.blueprint, this)
    }
  }

  /** Tells whether there may be changes after a number. */
  hasNewsAfter = (number: number) => number < this.#upto

  /** Runs work of one consumer in a turn of the tenant's costly work. */
  runInTurn = <T>(work: () => Promise<T>): Promise<T> => costlyWork.run(this.#payer, work, { whole: true })

  /** Returns the changes after a number, or undefined when they are no longer logged. */
  async readAfter(number: number): Promise<ChangePage | undefined> {
    if (number < this.#from) return readPage(this.tenant.db, this.blueprint, number)
    const changes = this.#recent.slice(this.#recent.findLastIndex((one) => one.number <= number) + 1)
    return { since: this.#from, last: this.#upto, upto: this.#upto, changes }
  }

  /** Reads new changes up to the tenant's `last` change, ticks the consumers and renews the log. */
  async tick(last: number) {
    if (last > this.#upto) this.#read()
    await this.#forEachConsumer((consumer) => consumer.tick())
    // The log is kept until a time of the clock, which may be set forward or back.
    if (Math.abs(now() - this.#renewedAt) < RENEWAL_MS) return
    this.#renewedAt = now()
    await enableLog(this.tenant, this.blueprint)
  }

  end() {
    for (const consumer of this.#consumers) consumer.end()
  }

  /** Reads new changes. A call during a read causes one more read afterwards. */
  async #read() {
    this.#readAgain = true
    if (this.#reading) return
    this.#reading = true
    try {
      while (this.#readAgain) {
        this.#readAgain = false
        await this.#readPages()
      }
    } catch (error) {
      reportFailure(error) // the next tick tries again
    } finally {
      this.#reading = false
    }
  }

  async #readPages() {
    for (let hasMore = true; hasMore && this.#consumers.size; ) {
      const page = await readPage(this.tenant.db, this.blueprint, this.#upto)
      if (!page) return this.end()
      const { since, last, upto, changes } = page
      hasMore = upto < last
      if (since > this.#upto) {
        // The changes were removed before they were read; each consumer notices the gap by `since`.
        this.#recent = []
        this.#from = since
        this.#upto = since
      } else {
        this.#from = Math.max(this.#from, upto - NUMBERS_PER_READ)
        this.#recent = [...this.#recent, ...changes].filter(({ number }) => number > this.#from)
        this.#upto = upto
      }
      await this.#forEachConsumer((consumer) => consumer.wake())
    }
  }

  /**
   * Thousands of consumers would block all other work, so they are called in groups. Each group is a slice of the
   * tenant's costly work, and the more time a consumer takes, the smaller the groups are.
   */
  async #forEachConsumer(work: (consumer: FeedConsumer) => void) {
    for (let remaining = [...this.#consumers]; remaining.length; ) {
      const group = remaining.slice(0, this.#groupSize)
      remaining = remaining.slice(this.#groupSize)
      const wake = async () => {
        const began = performance.now()
        for (const consumer of group) if (this.#consumers.has(consumer)) work(consumer)
        // The work that the consumers started is done after this turn.
        await yieldToEventLoop()
        const possible = Math.floor((group.length * GROUP_MS) / Math.max(performance.now() - began, 0.1))
        this.#groupSize = Math.max(MIN_GROUP_SIZE, Math.min(MAX_GROUP_SIZE, possible, 2 * this.#groupSize))
      }
      await (remaining.length ? this.runInTurn(wake) : wake())
    }
  }
}

async function readPage(db: Db, blueprint: string, number: number): Promise<ChangePage | undefined> {
  const page = await readChangesAfter(db, blueprint, number)
  return page && { ...page, changes: page.changes.map((row) => new Change(row)) }
}

/** Logs unexpected errors only. When the database is busy or gone, the next tick tries again. */
const reportFailure = (error: unknown) => {
  if (!(error instanceof Problem)) logError('CHANGES_NOT_READ', { cause: error })
}

type TenantFeeds = { tenant: Tenant; feeds: Map<string, Feed>; remoteVersion: number; isChecking: boolean }
const feedsByTenant = new Map<Db, TenantFeeds>()

/** Returns the feed of a blueprint. A new feed starts after number `last`. */
export function getFeed(tenant: Tenant, blueprint: string, last: number): Feed {
  const tenantFeeds = feedsByTenant.get(tenant.db) ?? {
    tenant,
    feeds: new Map(),
    remoteVersion: tenant.remoteVersion(),
    isChecking: false,
  }
  feedsByTenant.set(tenant.db, tenantFeeds)
  const feed = tenantFeeds.feeds.get(blueprint) ?? new Feed(tenant, blueprint, last)
  tenantFeeds.feeds.set(blueprint, feed)
  watchFeeds()
  return feed
}

function removeFeed({ db }: Tenant, blueprint: string, feed: Feed) {
  const tenantFeeds = feedsByTenant.get(db)
  if (tenantFeeds?.feeds.get(blueprint) !== feed) return
  tenantFeeds.feeds.delete(blueprint)
  if (!tenantFeeds.feeds.size) feedsByTenant.delete(db)
}

/** Ends all streams of this process. */
export function closeAllStreams() {
  for (const { feeds } of feedsByTenant.values()) for (const feed of feeds.values()) feed.end()
}

const POLL_MS = 100 // ms between two checks for news from another process
const MAX_TICK_MS = 1_000 // ms that changes of other processes may go unnoticed when no news arrives
let isWatching = false

/** Watches the feeds of all tenants until none is left. */
async function watchFeeds() {
  if (isWatching) return
  isWatching = true
  for (let lastCheck = performance.now(); feedsByTenant.size; await waitForPoll()) {
    const due = performance.now() - lastCheck >= MAX_TICK_MS
    if (due) lastCheck = performance.now()
    for (const tenantFeeds of feedsByTenant.values()) {
      if (tenantFeeds.isChecking || !(due || tenantFeeds.tenant.remoteVersion() !== tenantFeeds.remoteVersion)) continue
      tenantFeeds.isChecking = true
      checkTenant(tenantFeeds)
        .catch(reportFailure)
        .finally(() => {
          tenantFeeds.isChecking = false
        })
    }
  }
  isWatching = false
}

const waitForPoll = () => new Promise<void>((resolve) => void setTimeout(resolve, POLL_MS).unref())

async function checkTenant(tenantFeeds: TenantFeeds) {
  const { tenant, feeds } = tenantFeeds
  tenantFeeds.remoteVersion = tenant.remoteVersion()
  // Even when the number cannot be read, consumers check whether they may still listen: the tenant may be gone.
  const last = await getLastNumber(tenant).catch((error) => {
    reportFailure(error)
    return 0
  })
  await Promise.all([...feeds.values()].map((feed) => feed.tick(last)))
}

const getLastNumber = async (tenant: Tenant) => cached(tenant, 'changes', 'last', () => readLastNumber(tenant.db))
