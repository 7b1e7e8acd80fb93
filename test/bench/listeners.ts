// `bun test/bench/listeners.ts [listeners] [sqlite|postgres]`: what idle listeners take of memory and time, and how long it
// takes until all of them are told of a change; and what a neighbour's reads get while they stop reading and three writers
// change large entities as fast as they can.
import { readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { apiCaller, createTempFolder, createTenantByCli, PASSWORD, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { product, productsBlueprint } from './sample-data'

const count = Number(process.argv[2] ?? 5_000)
const LISTENERS_PER_CALLER = 100
const database = process.argv[3] === 'postgres' ? await startPostgres() : undefined
const env = { ATOLL_RATE_LIMITS: 'off', ...(database && { ATOLL_DATABASE_URL: database.url }) }
const runOptions = { at: createTempFolder(), env }
await createTenantByCli(runOptions, 'acme')
{
  await using server = await startAtoll(runOptions)
  const call = apiCaller(server.url, await signIn(server.url, 'acme'))
  const permissions = productsBlueprint.permissions.map((rule) => ({ ...rule, scope: 'tenant' }))
  await call('POST', '/api/blueprints', { ...productsBlueprint, permissions })
  const path = `/api/blueprints/${productsBlueprint.key}/entities`
  const memory = () => Number(readFileSync(`/proc/${server.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)![1]) / 1024
  /** Of the server, in ms since it began. */
  const busy = () => {
    const ticks = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1]!.split(' ').slice(11, 13)
    return ticks.reduce((sum, one) => sum + Number(one), 0) * 10
  }
  const tokens: string[] = []
  for (let n = 0; n < count / LISTENERS_PER_CALLER; n++) {
    const person = { username: `listener${n}`, password: PASSWORD, authType: 'oauth' }
    const { body } = await apiCaller(server.url, { tenant: 'acme' })('POST', '/api/signup', person)
    tokens.push(body.payload.token)
  }
  for (let n = 0; n < 200; n++) await call('POST', path, product(n))
  const before = memory()

  let told = 0
  let all = Promise.withResolvers<void>()
  const listen = (n: number) => {
    const ready = Promise.withResolvers<Socket>()
    const query = n % 2 ? '?$select=title' : ''
    const lines = [`GET ${path}/changes${query} HTTP/1.1`, 'host: a', 'tenant: acme']
    const socket = connect(server.port, '127.0.0.1', () =>
      socket.write(
        `${lines.join('\r\n')}\r\nauthorization: Bearer ${tokens[Math.floor(n / LISTENERS_PER_CALLER)]}\r\n\r\n`,
      ),
    )
    socket.setEncoding('latin1')
    socket.on('data', (text) => {
      if (`${text}`.includes('event: ready')) ready.resolve(socket)
      told += `${text}`.split('event: create').length - 1
      if (told === count) all.resolve()
    })
    socket.on('error', ready.reject).on('close', () => ready.reject(new Error('It was refused, or ended.')))
    return ready.promise
  }
  const began = performance.now()
  const sockets: Socket[] = []
  for (let n = 0; n < count; n += 100) {
    const some = Array.from({ length: Math.min(100, count - n) }, (_, i) => listen(n + i))
    sockets.push(...(await Promise.all(some)))
  }
  const after = memory()
  console.log(
    `${count} listeners: connected in ${Math.round(performance.now() - began)} ms, memory ${Math.round(before)} to ${Math.round(after)} MB, ${(((after - before) * 1024) / count).toFixed(1)} KB each`,
  )
  const idle = busy()
  await Bun.sleep(20_000)
  console.log(`idle for 20 s: ${((busy() - idle) / 200).toFixed(1)} % of a core, memory ${Math.round(memory())} MB`)

  const times: number[] = []
  const worked = busy()
  for (let n = 0; n < 20; n++) {
    told = 0
    all = Promise.withResolvers()
    const start = performance.now()
    await call('POST', path, product(1_000 + n))
    await all.promise
    times.push(performance.now() - start)
  }
  times.sort((a, b) => a - b)
  console.log(
    `a change reaches all in ${Math.round(times[10]!)} ms (median), ${Math.round(times[19]!)} ms (slowest of 20), ${Math.round((busy() - worked) / 20)} ms of the server's time; memory ${Math.round(memory())} MB`,
  )

  await createTenantByCli(runOptions, 'quiet')
  const quiet = apiCaller(server.url, await signIn(server.url, 'quiet'))
  for (const socket of sockets) socket.pause()
  let writing = true
  let writes = 0
  const writer = async () => {
    for (; writing; writes++) {
      const { status } = await call('POST', path, { ...product(10_000 + writes), notes: 'x'.repeat(20_000) })
      if (status !== 201) throw new Error(`A write was answered ${status}.`)
    }
  }
  const reads = async (ms: number) => {
    const times: number[] = []
    for (const end = performance.now() + ms; performance.now() < end; ) {
      const start = performance.now()
      await quiet('GET', '/api/me')
      times.push(performance.now() - start)
    }
    times.sort((a, b) => a - b)
    const at = (part: number) => times[Math.floor(times.length * part)]!.toFixed(1)
    return `${times.length} reads, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, slowest ${times.at(-1)!.toFixed(1)} ms`
  }
  console.log(`a neighbour alone, for 12 s: ${await reads(12_000)}`)
  const writers = [writer(), writer(), writer()]
  console.log(`beside ${count} listeners that read nothing and three writers of 20 KB: ${await reads(12_000)}`)
  writing = false
  await Promise.all(writers)
  console.log(`${writes} writes in these 12 s, memory ${Math.round(memory())} MB`)
  for (const socket of sockets) socket.destroy()
  await server.end('SIGTERM')
}
await database?.stop()
rmSync(runOptions.at, { recursive: true })
