import { tenantMigrations } from '../migrations'
import type { Actor } from './accounts/actors'
import type { PublicCtx } from './accounts/context'
import { BoundedMap } from './core/bounded-map'
import { getErrorChain, logOutput } from './core/log'
import { Problem } from './core/problem'
import { lowerThreadPriority } from './core/process-priority'
import { SpanRecorder } from './core/span-recorder'
import { recordSpans, runInTrace, type Trace } from './core/trace'
import { type EntityReadName, entityReads } from './entities/entity-reads'
import { takeReadStatistics } from './storage/database-statistics'
import { TenantMoved } from './storage/errors'
import type { DatabaseLocation } from './storage/port'
import { dropCache } from './tenancy/cache'
import { commitCounters, databases } from './tenancy/databases'
import type { Tenant } from './tenancy/tenants'
import type { ThreadCommand, ThreadMessage, ThreadRead } from './tenancy/thread-messages'

declare const self: Worker

const report = (message: ThreadMessage, transferred: ArrayBuffer[] = []) => self.postMessage(message, transferred)

const spanRecorder = new SpanRecorder()
recordSpans(spanRecorder)

/** Reports what was read for an answer before the answer itself. */
function reportWork() {
  const [statistics, spans] = [takeReadStatistics(), spanRecorder.take()]
  if (statistics.length || spans.length) report({ work: { statistics, spans } })
}

type RunningRead = {
  aborter: AbortController
  trace?: Trace
  reader?: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>
}
const running = new Map<number, RunningRead>()

const throwReadOnly = () => {
  throw new Error('A reader thread cannot write.')
}

const MAX_TENANTS = 1_000
/** What is cached of a tenant belongs to its store. */
const tenants = new BoundedMap<string, Tenant>(MAX_TENANTS)
const keyOf = ({ file, identity, exists, cluster, bucket }: DatabaseLocation) =>
  `${file} ${identity} ${exists} ${cluster} ${bucket}`

/** Returns the context in which the main thread would read. */
function contextOf({ place, actor }: ThreadRead): PublicCtx {
  const key = keyOf(place)
  const tenant = tenants.get(key) ?? openTenant(place)
  tenants.set(key, tenant)
  return { ...tenant, actor: actor as Actor | undefined }
}

function openTenant(place: DatabaseLocation): Tenant {
  const { db, remoteVersion } = databases.getStore(place, tenantMigrations)
  // Nothing is written here, so all commits are those of others. Nobody counts those of other servers in PostgreSQL.
  const readDb = place.cluster ? db : { ...db, commitVersion: remoteVersion }
  return { tenant: place.tenant, place, db: readDb, remoteVersion, write: throwReadOnly }
}

async function answer(id: number, read: ThreadRead) {
  const current: RunningRead = { aborter: new AbortController(), trace: read.trace }
  running.set(id, current)
  const request = new Request(read.url, { headers: read.headers, signal: current.aborter.signal })
  const response = await runInTrace(read.trace, () =>
    entityReads[read.name as EntityReadName](contextOf(read), request, read.args),
  )
  const { status, headers } = response
  if (!read.isStreamed) {
    const text = await response.text()
    running.delete(id)
    reportWork()
    return report({ id, answer: { status, headers: [...headers], text } })
  }
  current.reader = response.body?.getReader() as RunningRead['reader']
  report({ id, answer: { status, headers: [...headers] } })
}

async function sendNext(id: number) {
  const current = running.get(id)
  const part = await runInTrace(current?.trace, async () => current?.reader?.read())
  if (!part) return
  reportWork()
  if (!part.done) return report({ id, part: part.value }, [part.value.buffer])
  running.delete(id)
  report({ id, isOver: true })
}

function cancel(id: number) {
  const read = running.get(id)
  running.delete(id)
  read?.aborter.abort()
  read?.reader?.cancel().catch(() => {}) // the client is gone
}

function reportFailure(id: number, error: unknown) {
  if (!running.delete(id)) return
  reportWork()
  // The main thread learns where a moved tenant is, and repeats the read there.
  if (!(error instanceof Problem) || error instanceof TenantMoved) {
    const cause = getErrorChain(error).at(-1)
    return report({ id, failure: cause instanceof Error ? `${cause.stack}` : `${cause}` })
  }
  const { status, code, message, more } = error
  const headers = more.headers && Object.entries(more.headers)
  report({ id, problem: { status, code, message, details: more.details, headers } })
}

async function release(id: number, place: DatabaseLocation) {
  const key = keyOf(place)
  const tenant = tenants.get(key)
  if (tenant) dropCache(tenant)
  tenants.delete(key)
  await databases.release(place).catch(() => {}) // the main thread waits only for the attempt
  report({ id, isReleased: true })
}

async function end() {
  for (const id of running.keys()) cancel(id)
  await databases.close().catch(() => {}) // the thread ends anyway
  report({ hasEnded: true })
}

lowerThreadPriority()
logOutput.write = (line) => report({ log: line })
report({ isReady: true })
self.onmessage = ({ data }: MessageEvent<ThreadCommand>) => {
  if (data.act === 'start') return data.commits && commitCounters.join(data.commits)
  if (data.act === 'end') return void end()
  if (data.act === 'release') return void release(data.id, data.place)
  if (data.act === 'cancel') return cancel(data.id)
  const { id } = data
  if (data.act === 'next') return void sendNext(id).catch((error) => reportFailure(id, error))
  answer(id, data.read).catch((error) => reportFailure(id, error))
}
