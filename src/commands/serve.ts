import { resolve } from 'node:path'
import { Command } from 'commander'
import { version } from '../../package.json'
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
 * Waits until all requests are answered. A connection with an incomplete request is not waited for, and an incomplete
 * body only briefly: its sender may never end.
 */
async function waitForAnswers(server: { pendingRequests: number }) {
  const began = performance.now()
  for (;;) {
    const late = performance.now() - began > BODY_GRACE_MS ? countIncomingBodies() : 0
    if (server.pendingRequests <= late) return
    await Bun.sleep(POLL_INTERVAL_MS)
  }
}

async function openPortsOrExplain(): Promise<Listener> {
  const { ListenFailure, openPorts } = await import('./listener')
  try {
    return await openPorts()
  } catch (error) {
    if (!(error instanceof ListenFailure)) throw error
    throw explainListenFailure(error.cause, config.ATOLL_HOST, error.port, error.setting)
  }
}

type ServeOptions = { demo?: boolean; json?: boolean }

export const serve = new Command('serve')
  .description('Start the server')
  .option('--demo', 'create a demo tenant if none exists')
  .option('--json', 'print the address as JSON')
  .action(async (options: ServeOptions) => {
    const { databases } = await import('../tenancy/databases')
    await startServer(options).catch(async (error) => {
      // Connections to PostgreSQL would keep the process alive for a while.
      await databases.close()
      throw error
    })
  })

async function startServer({ demo, json }: ServeOptions) {
  const { lockDataFolder, databases } = await import('../tenancy/databases')
  const { endReadiness } = await import('../operations/readiness')
  const { releaseAllLeases } = await import('../jobs/with-lease')
  const { checkBackupSchedule } = await import('../backups/schedule')
  checkBackupSchedule()
  const { countTenants, isRegistered } = await import('../tenancy/tenants')
  // An unhandled rejection must not end all other requests.
  process.on('unhandledRejection', (error) => logError('UNHANDLED', { cause: error }))
  const { startLogShipping } = await import('../backups/log/log-shipper')
  const finishLogShipping = await startLogShipping()
  await lockDataFolder()
  const { ensureSecrets } = await import('../tenancy/installation-keys')
  await ensureSecrets()
  const { listUnknownFolders } = await import('../tenancy/adoption')
  const folders = await listUnknownFolders()
  if (folders.length)
    logError('UNKNOWN_FOLDERS', {
      folders,
      message: 'No tenant uses these folders. Import one with "atoll tenant adopt <folder>".',
    })
  const engine = config.ATOLL_DATABASE_URL ? 'postgres' : 'sqlite'
  log.info({ event: 'start', version, bun: Bun.version, folder: resolve(config.ATOLL_TENANTS), engine })
  const { startTraceExport } = await import('../operations/trace-export')
  const endTraceExport = await startTraceExport()
  const { startBackgroundWork } = await import('../app')
  const tenants = await countTenants()
  const isFirstStart = !tenants
  const { createFirstTenant, printFirstSteps } = await import('./first-steps')
  if (isFirstStart && !demo) await createFirstTenant()
  const server = await openPortsOrExplain()
  const background = startBackgroundWork()
  const { url } = server
  log.info({ event: 'ready', url, tenants })
  const defaultTenant = config.ATOLL_DEFAULT_TENANT
  if (defaultTenant && !(await isRegistered(defaultTenant)))
    log.warn({
      event: 'default-tenant-missing',
      message: `ATOLL_DEFAULT_TENANT is "${defaultTenant}", but there is no such tenant: requests without a host or header of a tenant get 404.`,
    })
  // Installed before the address is printed: its reader may stop the server at once.
  const stop = async (signal: string) => {
    log.info({ event: 'stop', signal })
    if (config.ATOLL_DRAIN) {
      endReadiness()
      await Bun.sleep(config.ATOLL_DRAIN * 1_000)
    }
    background.stop()
    const grace = Bun.sleep(SHUTDOWN_GRACE_MS - STREAM_CLOSE_MS).then(background.abort)
    const graceEnd = grace.then(() => Bun.sleep(STREAM_CLOSE_MS))
    const answered = Promise.race([server.stop(), waitForAnswers(server), graceEnd])
    await Promise.all([releaseAllLeases(), answered, Promise.race([background.finish(), graceEnd])])
    await server.stop(true)
    await endTraceExport()
    await databases.close()
    await finishLogShipping()
    log.info({ event: 'stopped' })
    await flushLog()
    process.exit(0)
  }
  let stopping: Promise<void> | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      // A second Ctrl+C ends the process without waiting.
      if (stopping && signal === 'SIGINT') process.exit(130)
      stopping ??= stop(signal)
    })

  // With `--json`, standard output contains only the JSON.
  const print = json ? console.error : console.log
  if (json) console.log(JSON.stringify({ url }))
  else console.log(`Atoll listens on ${url} (its API is described at ${url}/openapi)`)
  await printFirstSteps({ url, isDemo: !!demo, isFirstStart, print })
}
