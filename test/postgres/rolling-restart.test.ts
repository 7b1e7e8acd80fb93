import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeBlocksOf } from '../documents/markdown'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { findFreePort } from '../fakes/pebble'
import { databaseUrl } from '../storage/engines'
import { waitUntil } from '../wait-until'

const caddy = databaseUrl ? Bun.which('caddy', { PATH: `${process.env.PATH}:/usr/sbin` }) : null
if (databaseUrl && !caddy) console.warn('SKIPPED: the test of a rolling restart, because Caddy is not installed here.')

/** Starts a Caddy with the documented configuration before two servers. */
async function startBalancer(ports: [number, number]) {
  const folder = createTempFolder()
  const port = await findFreePort()
  const page = readFileSync(join(import.meta.dir, '../../docs/operations/deploy.md'), 'utf8')
  const site = codeBlocksOf(page)
    .find(({ info }) => info === 'caddy')!
    .code.replace('app.example.com', `http://127.0.0.1:${port}`)
    .replace('10.0.0.1:3000', `127.0.0.1:${ports[0]}`)
    .replace('10.0.0.2:3000', `127.0.0.1:${ports[1]}`)
  writeFileSync(join(folder, 'Caddyfile'), `{\nadmin off\nauto_https off\n}\n${site}`)
  const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const child = Bun.spawn([caddy!, 'run', '--config', join(folder, 'Caddyfile')], {
    env,
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const url = `http://127.0.0.1:${port}`
  await waitUntil(() =>
    fetch(`${url}/ready`)
      .then(({ ok }) => ok)
      .catch(() => false),
  )
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

describe.skipIf(!caddy)('two servers behind a load balancer that asks /ready', () => {
  test('a restart of one after the other loses no request', async () => {
    const ports: [number, number] = [await findFreePort(), await findFreePort()]
    const at = (index: 0 | 1) => ({
      at: createTempFolder(),
      env: {
        ATOLL_DATABASE_URL: databaseUrl!,
        ATOLL_PORT: `${ports[index]}`,
        ATOLL_DRAIN: '3',
        ATOLL_TRUST_PROXY: 'on',
      },
    })
    const places = [at(0), at(1)] as const
    const id = `rolling-${crypto.randomUUID().slice(0, 8)}`
    await createTenantByCli(places[0], id)
    const servers = [await startAtoll(places[0]), await startAtoll(places[1])]
    await using balancer = await startBalancer(ports)
    const call = apiCaller(balancer.url, await signIn(balancer.url, id))
    const fields = [{ key: 'name', type: 'string' }]
    expect((await call('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })).status).toBe(201)
    let isLoading = true
    const [made, failures] = [new Set<string>(), [] as unknown[]]
    const load = async (client: number) => {
      for (let n = 0; isLoading; n++) {
        const answers = [
          await call('POST', '/api/blueprints/things/entities', { name: `${client}-${n}` }).catch((error) => error),
          await call('GET', '/api/blueprints/things/entities?$limit=5').catch((error) => error),
        ]
        const isDone = answers[0].status === 201 && answers[1].status === 200
        if (isDone) made.add(answers[0].body._id)
        else failures.push(answers)
        await Bun.sleep(5)
      }
    }
    const clients = Array.from({ length: 6 }, (_, client) => load(client))
    const hasRequests = async (index: number) => {
      const metrics = await (await fetch(`http://127.0.0.1:${ports[index]}/metrics`)).text()
      return metrics.includes('route="/api/blueprints/:key/entities",status="201"')
    }
    for (const index of [0, 1] as const) {
      expect(await servers[index]!.end('SIGTERM')).toBe(0)
      servers[index] = await startAtoll(places[index])
      // The other one is stopped only once the balancer has found this one ready.
      await waitUntil(() => hasRequests(index), Boolean, 30_000)
    }
    isLoading = false
    await Promise.all(clients)
    expect(failures).toEqual([])
    const { headers } = await call('GET', '/api/blueprints/things/entities?$limit=1&$count=true')
    expect([headers.get('x-total-count'), made.size > 200]).toEqual([`${made.size}`, true])
    for (const server of servers) await server.end('SIGTERM')
  }, 120_000)
})
