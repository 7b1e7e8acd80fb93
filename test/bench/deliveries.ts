// `bun test/bench/deliveries.ts [events] [sqlite|postgres]`: how many deliveries a second reach a receiver on this machine, to
// one subscriber and to sixteen, and what it costs to ask a plugin through the server, beside asking it directly.
import { rmSync } from 'node:fs'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'

const count = Number(process.argv[2] ?? 5_000)
const database = process.argv[3] === 'postgres' ? await startPostgres() : undefined
const env = {
  ATOLL_ALLOW_PRIVATE_NETWORK: 'on',
  ATOLL_RATE_LIMITS: 'off',
  ...(database && { ATOLL_DATABASE_URL: database.url }),
}
const runOptions = { at: createTempFolder(), env }
await createTenantByCli(runOptions, 'acme')

let deliveredBefore = 0
const RECEIVER_SOURCE = `
let got = 0
const server = Bun.serve({ port: 0, hostname: '127.0.0.1', async fetch(request) {
  if (request.method === 'GET') return new Response(request.url.endsWith('/count') ? String(got) : 'hello')
  await request.text()
  got++
  return new Response()
} })
console.log(server.port)`
const child = Bun.spawn([process.execPath, '-e', RECEIVER_SOURCE], { stdout: 'pipe' })
const reader = child.stdout.getReader()
const url = `http://127.0.0.1:${Number(new TextDecoder().decode((await reader.read()).value))}`
const countDelivered = async () => Number(await (await fetch(`${url}/count`)).text())

{
  await using server = await startAtoll(runOptions)
  const headers = await signIn(server.url, 'acme')
  const call = apiCaller(server.url, headers)
  for (const subscribers of [1, 16]) {
    const made: string[] = []
    for (let n = 0; n < subscribers; n++) {
      const subscribedEvents = [{ source: 'bench', hookUrl: `${url}/${n}` }]
      made.push((await call('POST', '/api/plugins', { name: `p${n}`, subscribedEvents, active: false })).body._id)
    }
    for (const id of made) await call('PUT', `/api/plugins/${id}`, { active: true })
    const events = Math.round(count / subscribers)
    const began = performance.now()
    let left = events
    const teller = async () => {
      while (left-- > 0) await call('POST', '/api/events', { source: 'bench', metadata: { n: left } })
    }
    await Promise.all(Array.from({ length: 16 }, teller))
    const told = performance.now() - began
    while ((await countDelivered()) - deliveredBefore < events * subscribers) await Bun.sleep(20)
    const all = performance.now() - began
    deliveredBefore = await countDelivered()
    const rate = Math.round((events * subscribers * 1_000) / all)
    console.log(
      `${subscribers} subscribers: ${events} events told in ${Math.round(told)} ms, ${events * subscribers} deliveries in ${Math.round(all)} ms: ${rate} a second`,
    )
    for (const id of made) await call('DELETE', `/api/plugins/${id}`)
  }

  await call('POST', '/api/plugins', { name: 'proxied', apiPath: 'proxied', proxyUrl: url })
  const median = async (address: string, more: Record<string, string> = {}) => {
    const times: number[] = []
    for (let n = 0; n < 3_000; n++) {
      const start = performance.now()
      await (await fetch(address, { headers: more })).text()
      times.push(performance.now() - start)
    }
    return times.sort((one, other) => one - other)[1_500]!
  }
  for (let round = 0; round < 3; round++) {
    const direct = await median(`${url}/x`)
    const through = await median(`${server.url}/api/proxied/x`, headers)
    console.log(
      `a plugin directly: ${direct.toFixed(3)} ms, through the server: ${through.toFixed(3)} ms, more by ${(through - direct).toFixed(3)} ms (median)`,
    )
  }
  await server.end('SIGTERM')
}
child.kill()
await database?.stop()
rmSync(runOptions.at, { recursive: true })
