import { config } from '../config'
import { countIncomingBodies } from '../core/body'
import { flushLog, log, logError } from '../core/log'
import { explainListenFailure } from './failure'
import type { Listener } from './listener'

const SHUTDOWN_GRACE_MS = 10_000 // how long running requests may take at a shutdown
const BODY_GRACE_MS = 2_000 // how long incoming bodies may take at a shutdown
const POLL_INTERVAL_MS = 10 // between two checks of running requests
const STREAM_CLOSE_MS = 2_000 // the last part of the grace period, in which responses of AI models and long work are ended and stored

/**
 * Serves in this process until a signal ends it. Returns its address. `finishLastly` is called once all databases are
 * closed.
 * @throws ConfigError when a port cannot be opened
 */
export async function openServer(finishLastly: () => Promise<void> = async () => {}): Promise<{ url: string }> {
  // An unhandled rejection must not end all other requests.
  process.on('unhandledRejection', (error) => logError('UNHANDLED', { cause: error }))
  const { startTraceExport } = await import('../operations/trace-export')
  const endTraceExport = await startTraceExport()
  const { startBackgroundWork } = await import('../app')
  const { endReadiness } = await import('../operations/readiness')
  const { releaseAllLeases } = await import('../jobs/with-lease')
  const { databases } = await import('../tenancy/databases')
  const { endReaderThreads } = await import('../tenancy/reader-threads')
  const listener = await openPortsOrExplain()
  // Links in mails name the port, also where any free one was taken.
  config.ATOLL_PORT ||= Number(new URL(listener.url).port)
  const background = startBackgroundWork()
  stopAtSignals(async (signal) => {
    log.info({ event: 'stop', signal })
    if (config.ATOLL_DRAIN) {
      endReadiness()
      await Bun.sleep(config.ATOLL_DRAIN * 1_000)
    }
    background.stop()
    const grace = Bun.sleep(SHUTDOWN_GRACE_MS - STREAM_CLOSE_MS).then(background.abort)
    const graceEnd = grace.then(() => Bun.sleep(STREAM_CLOSE_MS))
    const answered = Promise.race([listener.stop(), waitForAnswers(listener), graceEnd])
    await Promise.all([releaseAllLeases(), answered, Promise.race([background.finish(), graceEnd])])
    await listener.stop(true)
    await endTraceExport()
    await endReaderThreads()
    await databases.close()
    await finishLastly()
    log.info({ event: 'stopped' })
    await flushLog()
    process.exit(0)
  })
  return { url: listener.url }
}

/** Calls `stop` at the first signal to end. A second Ctrl+C ends the process without waiting. */
export function stopAtSignals(stop: (signal: string) => Promise<void>) {
  let stopping: Promise<void> | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      if (stopping && signal === 'SIGINT') process.exit(130)
      stopping ??= stop(signal)
    })
}

async function openPortsOrExplain(): Promise<Listener> {
  const { openPorts } = await import('./listener')
  return explainPortFailure(openPorts)
}

/** Opens ports, or throws a ConfigError that says why it cannot. */
export async function explainPortFailure<T>(open: () => Promise<T>): Promise<T> {
  const { ListenFailure } = await import('./listener')
  try {
    return await open()
  } catch (error) {
    if (!(error instanceof ListenFailure)) throw error
    throw explainListenFailure(error.cause, config.ATOLL_HOST, error.port, error.setting)
  }
}

/**
 * Waits until all requests are answered. A connection with an incomplete request is not waited for, and an incomplete
 * body only briefly: its sender may never end.
 */
async function waitForAnswers(listener: { pendingRequests: number }) {
  const began = performance.now()
  for (;;) {
    const late = performance.now() - began > BODY_GRACE_MS ? countIncomingBodies() : 0
    if (listener.pendingRequests <= late) return
    await Bun.sleep(POLL_INTERVAL_MS)
  }
}
