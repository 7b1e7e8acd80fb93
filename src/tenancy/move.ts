import { eq } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { config } from '../config'
import { now } from '../core/clock'
import { notFound, Problem } from '../core/problem'
import { retryWhenBusy, TenantMoved } from '../storage/errors'
import { LiveCopy } from '../storage/live-copy'
import type { ExclusiveAccess, NameClaim, TenantCopyConnection } from '../storage/port'
import { assertDatabaseConfigured, pickHome, requireBucket } from './buckets'
import { PROPAGATION_MS } from './cache'
import { databases, tryClaim } from './databases'
import { settleRestore } from './pending-restores'
import { locationOf, recordLeftovers, restoring, setHome, type TenantRecord, toHomeName } from './placement'
import { registry } from './registry'
import { listLiveServers, listServersElsewhere } from './servers'
import { tenants } from './tables'
import { moveDatabaseToTrash } from './tenant-files'

const MAX_WRITE_PAUSE_MS = 200
const WRITE_WINDOW_MS = { max: 2_000, min: 20 } // how long writes run between two pauses
const MAX_REMAINING_MS = 10_000 // when the rest would take longer at this pace, the next window is shorter
const MAX_STALLED_ROUNDS = 30 // rounds with the shortest window in which the rest did not shrink
const PROGRESS_INTERVAL_MS = 5_000

/**
 * The result of a move. `waited` is how long writes had to wait (ms), `trash` where the files of the source are now.
 */
export type MoveResult = {
  id: string
  from: string
  to: string
  rows: number
  waited: number
  ms: number
  trash?: string
}

/** What a move reports while it runs, and what ends it early. */
export type MoveControl = {
  /** Receives lines about the progress. */
  onProgress(line: string): void
  /** Receives how much of the tenant is copied, from 0 to 1, where that is known. */
  onFraction?(fraction: number): void
  /** Abandons the move at its next safe moment; the tenant stays where it was. */
  signal?: AbortSignal
}

/** A move that nothing refuses any more. It keeps other moves of the tenant away until it is disposed of. */
export type PreparedMove = AsyncDisposable & {
  /** @throws 503 TENANT_TOO_BUSY when the tenant changes faster than it can be copied; then it was not moved */
  run(control: MoveControl): Promise<MoveResult>
}

/**
 * Moves a tenant to another home while it is in use: `sqlite`, `postgres` or `cluster/bucket`. Moving it to its current
 * home finishes an interrupted move. `onProgress` receives lines about the progress.
 * @throws what `prepareMove` and its `run` throw
 */
export async function moveTenant(id: string, to: string, onProgress: (line: string) => void): Promise<MoveResult> {
  await using move = await prepareMove(id, to)
  return await move.run({ onProgress })
}

/**
 * Checks what can be refused at once, and returns the move. Dispose of it after it has run.
 * @throws 404 TENANT_NOT_FOUND or BUCKET_NOT_FOUND, 503 RESTORING
 * @throws 400 NO_DATABASE without a configured database
 * @throws 409 TENANT_MOVING when the tenant is being moved already, SEVERAL_SERVERS
 */
export async function prepareMove(id: string, to: string): Promise<PreparedMove> {
  const { uid } = await settleRestore(id)
  if (to === 'sqlite' && !config.ATOLL_DATABASE_URL) {
    const result = { id, from: to, to, rows: 0, waited: 0, ms: 0 }
    return { run: async () => result, [Symbol.asyncDispose]: async () => {} }
  }
  assertDatabaseConfigured()
  if (to === 'sqlite') await assertOneServer()
  await using held = new AsyncDisposableStack()
  const claimed = await tryClaim(`move ${uid}`)
  if (!claimed)
    throw new Problem(409, 'TENANT_MOVING', 'This tenant is already being moved. Wait until that move has finished.')
  held.use(claimed)
  const entry = await recoverInterrupted(await getTenantRecord(id))
  if (entry.restoring) throw restoring()
  const home = await resolveHome(entry, to)
  const kept = held.move()
  return { run: (control) => moveTo(entry, home, claimed, control), [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

/** A file can be served only by the server in whose folder it is. @throws 409 SEVERAL_SERVERS */
async function assertOneServer() {
  const servers = await listLiveServers()
  if (new Set(servers.map(({ folder }) => folder)).size < 2 && !(await listServersElsewhere()).length) return
  const names = servers.map(({ name }) => name).join(', ')
  const message = `Several servers share this database (${names}), and only one of them would have the file. Stop the others first, or keep the tenant in PostgreSQL.`
  throw new Problem(409, 'SEVERAL_SERVERS', message)
}

async function moveTo(entry: TenantRecord, home: string, claimed: NameClaim, control: MoveControl) {
  const startedAt = performance.now()
  const { id } = entry
  const copied = home === entry.home ? { rows: 0, waited: 0 } : await copyTenant(entry, home, claimed, control)
  if (!entry.home && home) await Bun.sleep(PROPAGATION_MS)
  // The files of the source, or the rest of an interrupted attempt.
  const trash = home ? moveDatabaseToTrash(id) : undefined
  const ms = Math.round(performance.now() - startedAt)
  return { id, from: toHomeName(entry.home), to: toHomeName(home), ...copied, ms, ...(trash && { trash }) }
}

const getTenantRecord = async (id: string): Promise<TenantRecord> =>
  (await registry.db.select().from(tenants).where(eq(tenants.id, id)).get()) ?? notFound('tenant')

/** Completes a move that was interrupted between its last two steps, and returns the tenant. */
async function recoverInterrupted(entry: TenantRecord): Promise<TenantRecord> {
  try {
    await databases.getStore(locationOf(entry), tenantMigrations).db.query('select 1')
    return entry
  } catch (error) {
    if (!(error instanceof TenantMoved)) throw error
    await setHome(entry, error.home)
    return getTenantRecord(entry.id)
  }
}

async function resolveHome({ home }: TenantRecord, to: string): Promise<string> {
  if (to === 'sqlite') return ''
  if (to === 'postgres') return home || pickHome()
  return requireBucket(to)
}

async function copyTenant(entry: TenantRecord, home: string, claimed: NameClaim, control: MoveControl) {
  const { onProgress, onFraction, signal } = control
  if (entry.moved) await Bun.sleep(Math.max(0, Date.parse(entry.moved) + PROPAGATION_MS - now()))
  await registry.write((tx) => recordLeftovers(tx, entry.uid, home))
  // The folder is not served: it is left from an interrupted attempt.
  if (!home) moveDatabaseToTrash(entry.id)
  await using openCopies = new AsyncDisposableStack()
  const open = async (at: string) => {
    const tenantCopy = await databases.openTenantCopy(locationOf({ ...entry, home: at }), tenantMigrations)
    openCopies.defer(() => tenantCopy.close())
    return tenantCopy
  }
  const [source, target] = [await open(entry.home), await open(home)]
  await target.runExclusive(({ markMoved }) => markMoved())
  const mirror = new LiveCopy(source, target)
  onProgress('The rows are copied while the tenant is used.')
  await mirror.copyAll((fraction) => {
    signal?.throwIfAborted()
    if (fraction !== undefined) onFraction?.(fraction)
  })
  onProgress(`Copied ${mirror.copiedRows} rows; the checksums agree.`)
  await target.finish()
  const waited = await cutOver(source, mirror, control, async ({ markMoved }) => {
    await target.runExclusive(({ markServing }) => markServing())
    await claimed.assertHeld()
    await markMoved(home)
  })
  onProgress(`Writes waited ${waited} ms.`)
  if (!(await setHome(entry, home))) {
    // The tenant was deleted meanwhile.
    await target.runExclusive(({ markMoved }) => markMoved())
    if (!home) moveDatabaseToTrash(entry.id)
    notFound('tenant')
  }
  return { rows: mirror.copiedRows, waited }
}

/**
 * Copies the changes that are made meanwhile, and runs the last step when nothing is left and writes are paused.
 * Writers that are faster than that are paused for moments, with ever shorter windows between them, until fewer rows
 * change than are copied. Returns how long the last pause was (ms).
 * @throws 503 TENANT_TOO_BUSY when the rest does not shrink
 */
async function cutOver(
  source: TenantCopyConnection,
  mirror: LiveCopy,
  { onProgress, signal }: MoveControl,
  lastStep: (alone: ExclusiveAccess) => Promise<void>,
) {
  let [writeWindow, remainingBefore, fewestRemaining, stalledRounds, reportedAt] = [
    WRITE_WINDOW_MS.max,
    Number.POSITIVE_INFINITY,
    Number.POSITIVE_INFINITY,
    0,
    0,
  ]
  for (;;) {
    signal?.throwIfAborted()
    await mirror.renewCapture()
    const startedAt = performance.now()
    await retryWhenBusy(() => source.readSnapshot(({ query }) => mirror.applyChanges(query, writeWindow)))
    let [pausedAt, isDone] = [0, false]
    const remaining = await retryWhenBusy(() =>
      source.runExclusive(async (alone) => {
        pausedAt = performance.now()
        const remaining = await mirror.applyChanges(alone.query, MAX_WRITE_PAUSE_MS)
        isDone = remaining === 0
        if (isDone) await lastStep(alone)
        return remaining
      }),
    )
    const time = performance.now()
    if (isDone) return Math.round(time - pausedAt)
    if (time > reportedAt + PROGRESS_INTERVAL_MS) {
      onProgress(`${remaining} rows changed during the copy and remain to be copied.`)
      reportedAt = time
    }
    const pace = (remainingBefore - remaining) / (time - startedAt)
    if (remaining > pace * MAX_REMAINING_MS) writeWindow = Math.max(WRITE_WINDOW_MS.min, writeWindow / 2)
    remainingBefore = remaining
    stalledRounds = remaining < fewestRemaining || writeWindow > WRITE_WINDOW_MS.min ? 0 : stalledRounds + 1
    fewestRemaining = Math.min(fewestRemaining, remaining)
    if (stalledRounds > MAX_STALLED_ROUNDS)
      throw new Problem(
        503,
        'TENANT_TOO_BUSY',
        'This tenant changes faster than it can be copied. It was not moved. Try again when it is less busy.',
      )
  }
}
