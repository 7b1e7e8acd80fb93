import { resolve } from 'node:path'
import { Command, Option } from 'commander'
import { version } from '../../package.json'
import { config, hasSeveralProcesses } from '../config'
import { ConfigError } from '../core/config-error'
import { enableJitUnderLoad } from '../core/jit-policy'
import { flushLog, log, logError } from '../core/log'
import { joinServerProcesses, sendToSupervisor } from '../core/server-processes'

type ServeOptions = { demo?: boolean; json?: boolean; process?: string; run?: string }

/** What the server has found in its data folder. */
type Installation = { tenants: number; isFirstStart: boolean }

export const serve = new Command('serve')
  .description('Start the server')
  .option('--demo', 'create a demo tenant if none exists')
  .option('--json', 'print the address as JSON')
  .addOption(new Option('--process <number>', 'number of this process, which the server sets itself').hideHelp())
  .addOption(new Option('--run <id>', 'ID of the server run, which the server sets itself').hideHelp())
  .action(async (options: ServeOptions) => {
    // Before anything opens a database: it takes turns with the other processes.
    if (options.process)
      joinServerProcesses(Number(options.process), config.ATOLL_WORKERS, options.run, stopWithoutSupervisor)
    const { databases } = await import('../tenancy/databases')
    await startAs(options).catch(async (error) => {
      // Connections to PostgreSQL would keep the process alive for a while.
      await databases.close()
      throw error
    })
    enableJitUnderLoad()
  })

const stopWithoutSupervisor = () => process.kill(process.pid, 'SIGTERM')

function startAs(options: ServeOptions): Promise<void> {
  if (options.process) return startServerProcess()
  return hasSeveralProcesses ? startServerProcesses(options) : startServer(options)
}

/** Serves in this process alone. @throws ConfigError when it cannot start */
export async function startServer(options: ServeOptions) {
  const { startLogShipping } = await import('../backups/log/log-shipper')
  const finishLogShipping = await startLogShipping()
  const installation = await prepareInstallation(options)
  const { openServer } = await import('./server')
  const { url } = await openServer(finishLogShipping)
  log.info({ event: 'ready', url, tenants: installation.tenants })
  await announceServer(url, installation, options)
}

/** Serves as one of the processes of a supervisor. */
async function startServerProcess() {
  const { ensureSecrets } = await import('../tenancy/installation-keys')
  await ensureSecrets()
  const { openServer } = await import('./server')
  const { READY_TOPIC } = await import('./supervisor')
  const { url } = await openServer()
  sendToSupervisor(READY_TOPIC, url)
}

/** Supervises the processes that serve. */
async function startServerProcesses(options: ServeOptions) {
  if (process.platform !== 'linux')
    throw new ConfigError('ATOLL_WORKERS above 1 needs Linux, where processes can share a port. Remove the setting.')
  const { startLogShipping } = await import('../backups/log/log-shipper')
  await startLogShipping() // which says that it is not possible
  const installation = await prepareInstallation(options)
  const { explainPortFailure, stopAtSignals } = await import('./server')
  const { reservePort } = await import('./listener')
  const { StartFailed, Supervisor } = await import('./supervisor')
  const { databases, removeLeftovers } = await import('../tenancy/databases')
  const supervisor = new Supervisor(await explainPortFailure(reservePort), config.ATOLL_WORKERS)
  const stop = async () => {
    await supervisor.stop()
    await removeLeftovers()
    await databases.close()
    await flushLog()
  }
  stopAtSignals(async () => {
    await stop()
    process.exit(0)
  })
  try {
    const url = await supervisor.start()
    log.info({ event: 'ready', url, tenants: installation.tenants, workers: config.ATOLL_WORKERS })
    await announceServer(url, installation, options)
  } catch (error) {
    if (!(error instanceof StartFailed)) throw error
    await stop()
    process.exit(error.exitCode)
  }
}

/**
 * Does what comes before the first request, once for all processes: claims the data folder, checks the keys, and makes
 * the first tenant.
 */
async function prepareInstallation({ demo }: ServeOptions): Promise<Installation> {
  const { checkBackupSchedule } = await import('../backups/schedule')
  checkBackupSchedule()
  const { findDataFolderRisk, lockDataFolder } = await import('../tenancy/databases')
  const risk = findDataFolderRisk()
  if (risk && !risk.isUnsafe) logError('UNCERTAIN_FILE_SYSTEM', { message: risk.message })
  await lockDataFolder()
  const { ensureSecrets } = await import('../tenancy/installation-keys')
  await ensureSecrets()
  const { undoAbandonedRestores } = await import('../tenancy/pending-restores')
  await undoAbandonedRestores()
  const { trashAbandonedFolders } = await import('../tenancy/tenant-folders')
  await trashAbandonedFolders()
  const { claimConfiguredTarget } = await import('../backups/target-owner')
  await claimConfiguredTarget()
  const { listUnknownFolders } = await import('../tenancy/adoption')
  const folders = await listUnknownFolders()
  if (folders.length)
    logError('UNKNOWN_FOLDERS', {
      folders,
      message: 'No tenant uses these folders. Import one with "atoll tenant adopt <folder>".',
    })
  const engine = config.ATOLL_DATABASE_URL ? 'postgres' : 'sqlite'
  log.info({ event: 'start', version, bun: Bun.version, folder: resolve(config.ATOLL_TENANTS), engine })
  const { countTenants } = await import('../tenancy/tenant-list')
  const tenants = await countTenants()
  if (tenants > 1) {
    const { describeDefaultTenant, getDefaultTenant } = await import('../tenancy/default-tenant')
    const chosen = await getDefaultTenant()
    log.info({ event: 'default-tenant', ...chosen, message: describeDefaultTenant(chosen) })
  }
  const { createFirstTenant } = await import('./first-steps')
  if (!tenants && !demo) await createFirstTenant()
  return { tenants, isFirstStart: !tenants }
}

/** Prints the address, and how to get in for the first time. */
async function announceServer(url: string, { isFirstStart }: Installation, { demo, json }: ServeOptions) {
  const { isRegistered } = await import('../tenancy/tenant-list')
  const { printFirstSteps } = await import('./first-steps')
  const defaultTenant = config.ATOLL_DEFAULT_TENANT
  if (defaultTenant && !(await isRegistered(defaultTenant)))
    log.warn({
      event: 'default-tenant-missing',
      message: `ATOLL_DEFAULT_TENANT is "${defaultTenant}", which does not exist. Requests that name no tenant by host or header get 404.`,
    })
  // With `--json`, standard output contains only the JSON.
  const print = json ? console.error : console.log
  if (json) console.log(JSON.stringify({ url }))
  else console.log(`Atoll listens on ${url} (API reference: ${url}/openapi)`)
  await printFirstSteps({ url, isDemo: !!demo, isFirstStart, print })
}
