import { availableParallelism } from 'node:os'
import { config, environment, hasSeveralProcesses } from '../config'
import { logError, logOutput } from '../core/log'
import { Problem } from '../core/problem'
import { createMovedResponse } from '../core/response'
import { exportRecorded } from '../core/span-recorder'
import { currentTrace, isTraceRecorded } from '../core/trace'
import { workerUrl } from '../core/worker-url'
import { addReadStatistics } from '../storage/database-statistics'
import { Busy } from '../storage/errors'
import type { DatabaseLocation } from '../storage/port'
import { commitCounters } from './databases'
import type {
  ThreadAnswer,
  ThreadCommand,
  ThreadMessage,
  ThreadProblem,
  ThreadRead,
  ThreadWork,
} from './thread-messages'

/** A reader thread failed; the main thread can repeat the read. */
export class ThreadFailed extends Error {}

const OPEN_TENANTS_PER_THREAD = 64
const START_TIMEOUT_MS = 20_000 // until a thread that does not start is given up
const RELEASE_TIMEOUT_MS = 1_000 // until a database is closed here, whether a thread has closed it or not
const END_TIMEOUT_MS = 2_000 // until a thread that does not close its databases is ended

type RunningRead = {
  tenant: string
  onAnswer(answer: ThreadAnswer): void
  onFailure(error: unknown): void
  onPart?: (part: Uint8Array<ArrayBuffer> | undefined) => void
}

/** A thread with connections of its own, which only read. It takes turns among the reads that it was given. */
class ReaderThread {
  #worker: Worker
  #reads = new Map<number, RunningRead>()
  /** The databases that the thread may have open. */
  #places = new Set<string>()
  #releases = new Map<number, () => void>()
  #startTimer: ReturnType<typeof setTimeout>
  /** Ends the thread when it has read nothing for long. */
  #idleTimer?: ReturnType<typeof setTimeout>
  #isOver = false
  #hasEnded = Promise.withResolvers<void>()

  constructor(private onFailure: (thread: ReaderThread) => void) {
    const env = { ...environment, ATOLL_OPEN_TENANTS: `${OPEN_TENANTS_PER_THREAD}` }
    this.#worker = new Worker(workerUrl('reader-thread'), { env } as WorkerOptions)
    this.#worker.unref()
    this.#startTimer = setTimeout(() => {
      readerThreads.count = 0
      this.#fail('The thread did not start. Reads go on without threads.')
    }, START_TIMEOUT_MS).unref()
    this.send({ act: 'start', commits: hasSeveralProcesses ? undefined : commitCounters.memory })
    this.#worker.onmessage = ({ data }: MessageEvent<ThreadMessage>) => this.#receive(data)
    this.#worker.onerror = ({ message }) => this.#fail(message)
    this.#worker.addEventListener('close', () => this.#fail('The thread ended.'))
  }

  get load() {
    return this.#reads.size
  }

  /** Tells whether the thread is reading for a tenant. */
  isReadingFor = (tenant: string) => this.#reads.values().some((read) => read.tenant === tenant)

  send(command: ThreadCommand) {
    this.#worker.postMessage(command)
  }

  start(id: number, read: ThreadRead, running: RunningRead) {
    this.#reads.set(id, running)
    this.#places.add(toPlaceKey(read.place))
    this.#worker.ref()
    clearTimeout(this.#idleTimer)
    this.send({ act: 'read', id, read: isTraceRecorded() ? { ...read, trace: currentTrace() } : read })
  }

  remove(id: number) {
    this.#reads.delete(id)
    this.rest()
  }

  /** Lets the thread end later, when it has nothing to read. */
  rest() {
    if (this.#reads.size || !threads.includes(this)) return
    this.#worker.unref()
    clearTimeout(this.#idleTimer)
    this.#idleTimer = setTimeout(() => endThread(this), readerThreads.idleMs).unref()
  }

  /** Lets the thread close a database. Resolves when it has, or is slow; at once when it has not opened it. */
  async release(place: DatabaseLocation) {
    if (!this.#places.delete(toPlaceKey(place))) return
    const id = ++lastId
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#releases.set(id, resolve)
    this.send({ act: 'release', id, place })
    const timer = setTimeout(resolve, RELEASE_TIMEOUT_MS)
    await promise
    clearTimeout(timer)
    this.#releases.delete(id)
  }

  /** Lets the thread close its databases, and ends it. */
  async end() {
    this.#isOver = true
    clearTimeout(this.#startTimer)
    this.send({ act: 'end' })
    await Promise.race([this.#hasEnded.promise, Bun.sleep(END_TIMEOUT_MS)])
    this.#worker.terminate()
  }

  #receive(report: ThreadMessage) {
    if ('log' in report) return logOutput.write(report.log)
    if ('work' in report) return recordWork(report.work)
    if ('isReady' in report) return clearTimeout(this.#startTimer)
    if ('hasEnded' in report) return this.#hasEnded.resolve()
    if ('isReleased' in report) return this.#releases.get(report.id)?.()
    const running = this.#reads.get(report.id)
    if (!running) return
    if ('answer' in report) return running.onAnswer(report.answer)
    if ('part' in report) return running.onPart?.(report.part)
    if ('isOver' in report) return running.onPart?.(undefined)
    running.onFailure('problem' in report ? toProblem(report.problem) : new ThreadFailed(report.failure))
  }

  #fail(message: string) {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#startTimer)
    clearTimeout(this.#idleTimer)
    logError('READER_THREAD_FAILED', { cause: message })
    this.onFailure(this)
    this.#worker.terminate()
    for (const { onFailure } of [...this.#reads.values()]) onFailure(new ThreadFailed(message))
  }
}

const toPlaceKey = ({ file, cluster = '', bucket = '' }: DatabaseLocation) => `${file} ${cluster} ${bucket}`

function recordWork({ statistics, spans }: ThreadWork) {
  for (const ofEngine of statistics) addReadStatistics(ofEngine)
  exportRecorded(spans)
}

const toProblem = ({ status, code, message, details, headers }: ThreadProblem) =>
  new Problem(status, code, message, { details, ...(headers && { headers: Object.fromEntries(headers) }) })

const defaultCount = Math.max(2, Math.ceil(availableParallelism() / config.ATOLL_WORKERS))

const IDLE_MS = 5 * 60_000

/** How many threads there may be. They start when they are needed, and end when they have read nothing for `idleMs`. */
export const readerThreads = {
  count: config.ATOLL_READER_THREADS < 0 ? defaultCount : config.ATOLL_READER_THREADS,
  idleMs: IDLE_MS,
}
let threads: ReaderThread[] = []
/** Threads that are closing their databases, because they were idle. */
const endingThreads = new Set<Promise<void>>()
let lastId = 0
let isEnding = false

/** Tells whether threads can read data of this place. */
export const hasReaderThreads = (place: DatabaseLocation | undefined): place is DatabaseLocation =>
  !!place && readerThreads.count > 0 && Bun.isMainThread && !isEnding

/**
 * Answers a read in a thread, so that other requests do not wait for it.
 * @throws ThreadFailed when it has to be repeated here, or the refusal of the read
 */
export function readInThread(read: ThreadRead, signal: AbortSignal): Promise<Response> {
  const thread = chooseThread(read.place)
  const id = ++lastId
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  const finish = () => {
    signal.removeEventListener('abort', cancel)
    thread.remove(id)
  }
  const cancel = () => {
    finish()
    thread.send({ act: 'cancel', id })
    running.onFailure(new Busy('The client disconnected.'))
  }
  signal.addEventListener('abort', cancel)
  const running: RunningRead = {
    tenant: read.place.tenant,
    onAnswer({ status, headers, text }) {
      if (text === undefined) {
        const body = receiveBody(running, () => thread.send({ act: 'next', id }), finish, cancel)
        return resolve(new Response(body, { status, headers }))
      }
      finish()
      resolve(createMovedResponse(text, status, headers))
    },
    onFailure(error) {
      finish()
      reject(error)
    },
  }
  thread.start(id, read, running)
  return promise
}

/** Returns a body whose parts the thread sends as the client reads them. */
function receiveBody(running: RunningRead, askForNext: () => void, finish: () => void, cancel: () => void) {
  let waiting: PromiseWithResolvers<Uint8Array<ArrayBuffer> | undefined> | undefined
  running.onPart = (part) => waiting?.resolve(part)
  running.onFailure = (error) => {
    finish()
    waiting?.reject(error)
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        waiting = Promise.withResolvers()
        askForNext()
        const part = await waiting.promise
        if (part) return controller.enqueue(part)
        finish()
        controller.close()
      },
      cancel,
    },
    { highWaterMark: 0 },
  )
}

/**
 * Returns the thread with the fewest reads; a new one while all others are busy and there may be more. The reads of a
 * tenant in PostgreSQL stay in one thread, where one of its statements runs at a time, because they compete with those of
 * others there.
 */
function chooseThread({ cluster, tenant }: DatabaseLocation): ReaderThread {
  const current = cluster && threads.find((thread) => thread.isReadingFor(tenant))
  if (current) return current
  const [idlest] = threads.toSorted((one, other) => one.load - other.load)
  if (idlest && (!idlest.load || threads.length >= readerThreads.count)) return idlest
  return addThread()
}

function addThread(): ReaderThread {
  const started = new ReaderThread((failed) => {
    threads = threads.filter((thread) => thread !== failed)
  })
  threads.push(started)
  return started
}

/** Tells whether a thread runs, or starts. */
export const hasThread = () => threads.length > 0

/** Starts a thread if there is none, so that the next read does not wait for it. */
export function startThread() {
  if (!threads.length && readerThreads.count > 0 && !isEnding) addThread().rest()
}

/** The number of threads that run now. */
export const countThreads = () => threads.length

/** Ends an idle thread, which closes its databases and gives its memory back. */
function endThread(idle: ReaderThread) {
  threads = threads.filter((thread) => thread !== idle)
  const ending = idle.end().finally(() => endingThreads.delete(ending))
  endingThreads.add(ending)
}

/** Lets the threads close a database that is about to be closed here. */
export async function releaseInThreads(place: DatabaseLocation) {
  await Promise.all([...threads.map((thread) => thread.release(place)), ...endingThreads])
}

/** Ends all threads, which close their databases before. */
export async function endReaderThreads() {
  isEnding = true
  const ending = threads
  threads = []
  await Promise.all([...ending.map((thread) => thread.end()), ...endingThreads])
}
