// `bun test/bench/outgoing.ts [calls] [sqlite|postgres]`: how long a tenant's call of a server that answers takes while another
// tenant has so many calls of a server that never does, beside the same without them.
import { request } from 'node:http'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'

const count = Number(process.argv[2] ?? 300)
const database = process.argv[3] === 'postgres' ? await startPostgres() : undefined
const env = {
  ...{ ATOLL_ALLOW_PRIVATE_NETWORK: 'on', ATOLL_RATE_LIMITS: 'off' },
  ...(database && { ATOLL_DATABASE_URL: database.url }),
}
const runOptions = { at: createTempFolder(), env }
for (const tenant of ['acme', 'quiet']) await createTenantByCli(runOptions, tenant)
const receiverServer = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  fetch: ({ url }) => (url.endsWith('/silent') ? new Promise<Response>(() => {}) : new Response()),
})

{
  await using server = await startAtoll(runOptions)
  const headers = { acme: await signIn(server.url, 'acme'), quiet: await signIn(server.url, 'quiet') }
  const check = (tenant: keyof typeof headers, path: string) =>
    new Promise<void>((resolve, reject) => {
      // Not by `fetch`, of which this process has 256 at a time, too.
      const options = { method: 'POST', headers: { ...headers[tenant], 'content-type': 'application/json' } }
      const asked = request(`${server.url}/api/integration-sources/status`, options, (answer) =>
        answer.resume().on('end', resolve),
      )
      asked.on('error', reject).end(JSON.stringify({ kind: 'http', metadata: { url: `${receiverServer.url}${path}` } }))
    })
  const median = async () => {
    const times: number[] = []
    for (let n = 0; n < 200; n++) {
      const began = performance.now()
      await check('quiet', 'ok')
      times.push(performance.now() - began)
    }
    times.sort((a, b) => a - b)
    return { median: times[100]!, worst: times[199]! }
  }
  await median()
  const alone = await median()
  for (let n = 0; n < count; n++) check('acme', 'silent').catch(() => {})
  await Bun.sleep(500)
  const beside = await median()
  const ms = (time: number) => `${time.toFixed(1)} ms`
  console.log(`alone: median ${ms(alone.median)}, worst ${ms(alone.worst)}`)
  console.log(`beside ${count} calls that hang: median ${ms(beside.median)}, worst ${ms(beside.worst)}`)
  console.log(`ratio of the medians: ${(beside.median / alone.median).toFixed(2)}`)
}
await receiverServer.stop(true)
await database?.stop()
process.exit()
