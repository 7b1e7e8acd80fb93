import { Command } from 'commander'
import { config } from '../config'
import { report } from '../core/log'
import type { listen } from '../gateway'
import { explainListenFailure } from './failure'
import { invocation } from './invocation'

const GRACE = 10_000 // ms that running requests get when we are told to stop
const FAREWELL = 2_000 // ms of them, in which what models say is ended and kept

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
    const { anyTenant } = await import('../tenancy/tenants')
    // Whatever was forgotten somewhere must not end all other requests.
    process.on('unhandledRejection', (error) => report('UNHANDLED', { cause: error }))
    await ownData()
    const { listen } = await import('../gateway')
    const fresh = !(await anyTenant())
    const server = listenOrExplain(listen)
    const endHousekeeping = keepHouse(chores, config.ATOLL_HOUSEKEEPING * 1_000)
    const endJobs = runJobs()
    const endWarming = keepWarm()
    const url = `http://${server.hostname?.includes(':') ? `[${server.hostname}]` : server.hostname}:${server.port}`
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

    const stop = async () => {
      endHousekeeping()
      endJobs()
      endWarming()
      endAll()
      endListening()
      const grace = Bun.sleep(GRACE - FAREWELL).then(endTurns)
      await Promise.all([releaseAll(), Promise.race([server.stop(), grace.then(() => Bun.sleep(FAREWELL))])])
      await server.stop(true)
      await storage.close()
      process.exit(0)
    }
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop)
  })
