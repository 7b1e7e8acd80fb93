// `bun test/bench/listeners.ts [listeners] [sqlite|postgres]`: what idle listeners take of memory and time, and how long it
// takes until all of them are told of a change.
import { readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { startPostgres } from '../outside/postgres'
import { caller, emptyFolder, makeTenant, PASSWORD, serve, signIn } from '../outside/program'
import { blueprint, product } from './data'

const count = Number(process.argv[2] ?? 5_000)
const OF_CALLER = 100
const database = process.argv[3] === 'postgres' ? await startPostgres() : undefined
const env = { ATOLL_RATE_LIMITS: 'off', ...(database && { ATOLL_DATABASE_URL: database.url }) }
const at = { at: emptyFolder(), env }
await makeTenant(at, 'acme')
{
  await using server = await serve(at)
  const call = caller(server.url, await signIn(server.url, 'acme'))
  const permissions = blueprint.permissions.map((rule) => ({ ...rule, scope: 'tenant' }))
  await call('POST', '/api/blueprints', { ...blueprint, permissions })
  const path = `/api/blueprints/${blueprint.key}/entities`
  const memory = () => Number(readFileSync(`/proc/${server.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)![1]) / 1024
  /** Of the server, in ms since it began. */
  const busy = () => {
    const ticks = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1]!.split(' ').slice(11, 13)
    return ticks.reduce((sum, one) => sum + Number(one), 0) * 10
  }
  const tokens: string[] = []
  for (let n = 0; n < count / OF_CALLER; n++) {
    const person = { username: `listener${n}`, password: PASSWORD, authType: 'oauth' }
    const { body } = await caller(server.url, { tenant: 'acme' })('POST', '/api/signup', person)
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
      socket.write(`${lines.join('\r\n')}\r\nauthorization: Bearer ${tokens[Math.floor(n / OF_CALLER)]}\r\n\r\n`),
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
  for (const socket of sockets) socket.destroy()
  await server.end('SIGTERM')
}
await database?.stop()
rmSync(at.at, { recursive: true })
