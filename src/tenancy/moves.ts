import { eq } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { config } from '../config'
import { now } from '../core/clock'
import { missing, Problem } from '../core/problem'
import { again, Moved } from '../storage/errors'
import { Mirror } from '../storage/mirror'
import type { Alone, Bulk, Claim } from '../storage/port'
import { freshHome, requireBucket, requireDatabase } from './buckets'
import { type Entry, leaveRemains, placeOf, rehome } from './homes'
import { registry } from './registry'
import { claim, discard, storage } from './storage'
import { tenants } from './tables'

const HOLD = 200 // ms for which writes wait
const BREATH = { most: 2_000, least: 20 } // ms for which they go on between two such times
const SOON = 10_000 // ms; what would take longer at this pace makes the next breath shorter
const VAIN = 30 // times that writes waited as often as they may, and no less was left to do than ever before
const TELL = 5_000 // ms
const HEARD = 1_500 // ms; by then every process knows of the last move, and none looks at the place before

/** What a move did: `waited` is for how many ms writes had to wait. `trash` is where the files of the source are now. */
export type Move = { id: string; from: string; to: string; rows: number; waited: number; ms: number; trash?: string }

/**
 * Moves a tenant to another home while it is served: `sqlite`, `postgres` or `cluster/bucket`. Moving to where it is
 * finishes a move that was interrupted. `tell` hears how it goes on.
 */
export async function moveTenant(id: string, to: string, tell: (line: string) => void): Promise<Move> {
  const began = performance.now()
  const { uid } = await found(id)
  if (to === 'sqlite' && !config.ATOLL_DATABASE_URL) return { id, from: to, to, rows: 0, waited: 0, ms: 0 }
  requireDatabase()
  await using claimed = await claim(`move ${uid}`)
  if (!claimed) throw new Problem(409, 'TENANT_MOVING', 'This tenant is being moved already. Wait for that to end.')
  const entry = await settled(await found(id))
  const home = await destination(entry, to)
  const copied = home === entry.home ? { rows: 0, waited: 0 } : await copy(entry, home, claimed, tell)
  if (!entry.home && home) await Bun.sleep(HEARD)
  // The files of the source, or what is left of an attempt that was interrupted.
  const trash = home ? discard(id) : undefined
  const ms = Math.round(performance.now() - began)
  return { id, from: nameOf(entry.home), to: nameOf(home), ...copied, ms, ...(trash && { trash }) }
}

const nameOf = (home: string) => home || 'sqlite'

const found = async (id: string): Promise<Entry> =>
  (await registry.db.select().from(tenants).where(eq(tenants.id, id)).get()) ?? missing('tenant')

/** The tenant as it is after a move that was interrupted between its two last steps. */
async function settled(entry: Entry): Promise<Entry> {
  try {
    await storage.store(placeOf(entry), tenantMigrations).db.ask('select 1')
    return entry
  } catch (error) {
    if (!(error instanceof Moved)) throw error
    await rehome(entry, error.home)
    return found(entry.id)
  }
}

async function destination({ home }: Entry, to: string): Promise<string> {
  if (to === 'sqlite') return ''
  if (to === 'postgres') return home || freshHome()
  return requireBucket(to)
}

async function copy(entry: Entry, home: string, claimed: Claim, tell: (line: string) => void) {
  if (entry.moved) await Bun.sleep(Math.max(0, Date.parse(entry.moved) + HEARD - now()))
  await registry.write((tx) => leaveRemains(tx, entry.uid, home))
  // Nobody serves what is in the folder: it is of an attempt that was interrupted.
  if (!home) discard(entry.id)
  await using bulks = new AsyncDisposableStack()
  const open = async (at: string) => {
    const bulk = await storage.bulk(placeOf({ ...entry, home: at }), tenantMigrations)
    bulks.defer(() => bulk.close())
    return bulk
  }
  const [source, target] = [await open(entry.home), await open(home)]
  await target.alone(({ leave }) => leave())
  const mirror = new Mirror(source, target)
  await mirror.begin()
  tell(`Copied ${mirror.rows} rows; the checksums agree.`)
  await target.settle()
  const waited = await switched(source, mirror, tell, async ({ leave }) => {
    await target.alone(({ serve }) => serve())
    await claimed.require()
    await leave(home)
  })
  tell(`Writes waited ${waited} ms.`)
  if (!(await rehome(entry, home))) {
    // It was deleted meanwhile.
    await target.alone(({ leave }) => leave())
    if (!home) discard(entry.id)
    missing('tenant')
  }
  return { rows: mirror.rows, waited }
}

/**
 * Brings over what others change meanwhile, and does the last step when nothing is left and nobody writes. Those who write
 * faster than that wait for moments, and go on for ever shorter ones between them, until less is changed than brought over.
 * Returns for how many milliseconds they waited at last.
 */
async function switched(
  source: Bulk,
  mirror: Mirror,
  tell: (line: string) => void,
  step: (alone: Alone) => Promise<void>,
) {
  let [breath, before, fewest, vain, told] = [BREATH.most, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0, 0]
  for (;;) {
    await mirror.renew()
    const began = performance.now()
    await again(() => source.snapshot(({ ask }) => mirror.follow(ask, breath)))
    let [held, done] = [0, false]
    const left = await again(() =>
      source.alone(async (alone) => {
        held = performance.now()
        const left = await mirror.follow(alone.ask, HOLD)
        done = left === 0
        if (done) await step(alone)
        return left
      }),
    )
    const now = performance.now()
    if (done) return Math.round(now - held)
    if (now > told + TELL) {
      tell(`Changed meanwhile, and not brought over yet: ${left} rows.`)
      told = now
    }
    const pace = (before - left) / (now - began)
    if (left > pace * SOON) breath = Math.max(BREATH.least, breath / 2)
    before = left
    vain = left < fewest || breath > BREATH.least ? 0 : vain + 1
    fewest = Math.min(fewest, left)
    if (vain > VAIN)
      throw new Problem(
        503,
        'TENANT_TOO_BUSY',
        'This tenant is written to faster than it can be copied. It stays where it is: move it at a quieter time.',
      )
  }
}
