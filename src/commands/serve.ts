import { resolve } from 'node:path'
import { Command } from 'commander'
import { version } from '../../package.json'
import { config } from '../config'
import { countIncomingBodies } from '../core/body'
import { flushLog, log, report } from '../core/log'
import type { listen } from '../gateway'
import { explainListenFailure } from './failure'
import { invocation } from './invocation'

const GRACE = 10_000 // ms that running requests get when we are told to stop
const BODY_PATIENCE = 2_000 // ms that the rest of bodies gets which are still coming in
const LOOK = 10 // ms between two looks whether all are answered
const FAREWELL = 2_000 // ms of them, in which what models say is ended and kept

/**
 * Waits until all requests are answered. A connection that has sent a part of a request holds nothing up, and the rest of
 * a body is waited for only for a moment: whoever sends it may never end.
 */
async function waitForAnswers(server: { pendingRequests: number }) {
  const began = performance.now()
  for (;;) {
    const late = performance.now() - began > BODY_PATIENCE ? countIncomingBodies() : 0
    if (server.pendingRequests <= late) return
    await Bun.sleep(LOOK)
  }
}

function listenOrExplain(start: typeof listen) {
  const { ATOLL_HOST: host, ATOLL_PORT: port } = config
  try {
    return start(host, port)
  } catch (error) {
    throw explainListenFailure(error, host, port)
  }
}

export const serve = new Command('serve')
  .description('Start the server')
  .option('--demo', 'create a demo tenant if none exists')
  .option('--json', 'print the address as JSON')
  .action(async ({ demo, json }: { demo?: boolean; json?: boolean }) => {
    const { ownData, storage } = await import('../tenancy/storage')
    const { releaseAll } = await import('../jobs/holding')
    const { keepHouse } = await import('../jobs/housekeeping')
    const { runJobs } = await import('../jobs/runner')
    const { endAll } = await import('../entities/changes/feed')
    const { keepWarm } = await import('../plugins/lambdas/warm')
    const { endListening } = await import('../plugins/proxy')
    const { endTurns } = await import('../ai/turn/completion')
    const { chores } = await import('../operations/chores')
    const { keepHostsProven } = await import('../tenancy/host-checks')
    const { countTenants, isRegistered } = await import('../tenancy/tenants')
    // Whatever was forgotten somewhere must not end all other requests.
    process.on('unhandledRejection', (error) => report('UNHANDLED', { cause: error }))
    await ownData()
    const { requireSecrets } = await import('../tenancy/secrets')
    await requireSecrets()
    const { listUnknownFolders } = await import('../tenancy/adoption')
    const folders = await listUnknownFolders()
    if (folders.length)
      report('UNKNOWN_FOLDERS', {
        folders,
        told: 'No tenant has these folders. "atoll tenant adopt <folder>" makes one of it.',
      })
    const engine = config.ATOLL_DATABASE_URL ? 'postgres' : 'sqlite'
    log.info({ event: 'start', version, bun: Bun.version, folder: resolve(config.ATOLL_TENANTS), engine })
    const { listen } = await import('../gateway')
    const tenants = await countTenants()
    const fresh = !tenants
    const server = listenOrExplain(listen)
    const endHousekeeping = keepHouse(chores, config.ATOLL_HOUSEKEEPING * 1_000)
    const endJobs = runJobs()
    const endWarming = keepWarm()
    const endHostChecks = keepHostsProven()
    const url = `http://${server.hostname?.includes(':') ? `[${server.hostname}]` : server.hostname}:${server.port}`
    log.info({ event: 'ready', url, tenants })
    const standard = config.ATOLL_DEFAULT_TENANT
    if (standard && !(await isRegistered(standard)))
      log.warn({
        event: 'default-tenant-missing',
        message: `ATOLL_DEFAULT_TENANT is "${standard}", but there is no such tenant: requests without a host or header of a tenant get 404.`,
      })
    // Before the address is printed: whoever reads it may stop us at once.
    const stop = async (signal: string) => {
      log.info({ event: 'stop', signal })
      endHousekeeping()
      endJobs()
      endWarming()
      endHostChecks()
      endAll()
      endListening()
      const grace = Bun.sleep(GRACE - FAREWELL).then(endTurns)
      const answered = Promise.race([server.stop(), waitForAnswers(server), grace.then(() => Bun.sleep(FAREWELL))])
      await Promise.all([releaseAll(), answered])
      await server.stop(true)
      await storage.close()
      log.info({ event: 'stopped' })
      await flushLog()
      process.exit(0)
    }
    let stopping: Promise<void> | undefined
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.on(signal, () => {
        // Whoever presses Ctrl+C again does not want to wait.
        if (stopping && signal === 'SIGINT') process.exit(130)
        stopping ??= stop(signal)
      })

    // For a program, standard output holds the JSON and nothing else.
    const say = json ? console.error : console.log
    if (json) console.log(JSON.stringify({ url }))
    else console.log(`Atoll listens on ${url} (its API is described at ${url}/openapi)`)
    if (fresh && demo) {
      const { makeDemo } = await import('../demo/demo')
      say(await makeDemo(server.port!, invocation))
    } else if (fresh) {
      say(`There is no tenant yet. Create one: ${invocation} tenant create <id> --host <host> --admin-username <name>`)
    }
  })
