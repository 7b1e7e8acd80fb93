// `bun test/bench/feeds.ts [subscribers] [sqlite|postgres] [rounds]`: how many reads by id a tenant gets while all subscribers of
// another tenant are told of one change after the other, as a part of what it gets alone.
import { rmSync } from 'node:fs'
import { connect } from 'node:net'
import { apiCaller, createTempFolder, createTenantByCli, PASSWORD, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { type Figures, measure } from './load'
import { product, productsBlueprint } from './sample-data'

const SUBSCRIBERS_PER_CALLER = 100
const SECONDS = 2

/** Subscribes in a process of its own, and counts the bytes that come. */
async function subscribe(port: number, path: string, tokens: string[], count: number) {
  let bytes = 0
  const open = (n: number) =>
    new Promise<void>((resolve, reject) => {
      const query = n % 2 ? '?$select=title' : ''
      const lines = [`GET ${path}/changes${query} HTTP/1.1`, 'host: a', 'tenant: busy']
      const token = tokens[Math.floor(n / SUBSCRIBERS_PER_CALLER)]
      const socket = connect(port, '127.0.0.1', () =>
        socket.write(`${lines.join('\r\n')}\r\nauthorization: Bearer ${token}\r\n\r\n`),
      )
      socket.on('data', (chunk) => {
        bytes += chunk.length
        resolve()
      })
      socket.on('error', reject)
    })
  for (let n = 0; n < count; n += 100)
    await Promise.all(Array.from({ length: Math.min(100, count - n) }, (_, i) => open(n + i)))
  console.log('ready')
  for await (const _ of console) console.log(bytes)
}

if (process.argv[2] === 'subscribe') {
  const [port, path, tokens, count] = process.argv.slice(3) as [string, string, string, string]
  await subscribe(Number(port), path, tokens.split(','), Number(count))
  process.exit()
}

const count = Number(process.argv[2] ?? 2_000)
const database = process.argv[3] === 'postgres' ? await startPostgres() : undefined
const rounds = Number(process.argv[4] ?? 5)
const env = { ATOLL_RATE_LIMITS: 'off', ...(database && { ATOLL_DATABASE_URL: database.url }) }
const runOptions = { at: createTempFolder(), env }
for (const tenant of ['busy', 'quiet']) await createTenantByCli(runOptions, tenant)
{
  await using server = await startAtoll(runOptions)
  const path = `/api/blueprints/${productsBlueprint.key}/entities`
  const permissions = productsBlueprint.permissions.map((rule) => ({ ...rule, scope: 'tenant' }))
  const prepare = async (tenant: string) => {
    const headers = await signIn(server.url, tenant)
    const call = apiCaller(server.url, headers)
    await call('POST', '/api/blueprints', { ...productsBlueprint, permissions })
    return { headers, call }
  }
  const [busy, quiet] = [await prepare('busy'), await prepare('quiet')]
  const ids: string[] = []
  for (let n = 0; n < 50; n++) ids.push((await quiet.call('POST', path, product(n))).body._id)
  const tokens: string[] = []
  for (let n = 0; n < count / SUBSCRIBERS_PER_CALLER; n++) {
    const person = { username: `subscriber${n}`, password: PASSWORD, authType: 'oauth' }
    tokens.push((await apiCaller(server.url, { tenant: 'busy' })('POST', '/api/signup', person)).body.payload.token)
  }
  const child = Bun.spawn(
    [process.execPath, import.meta.path, 'subscribe', `${server.port}`, path, tokens.join(), `${count}`],
    { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' },
  )
  const answers = child.stdout.getReader()
  const readAnswer = async () => new TextDecoder().decode((await answers.read()).value).trim()
  const countBytes = async () => {
    child.stdin.write('\n')
    child.stdin.flush()
    return Number(await readAnswer())
  }
  await readAnswer()

  let isWriting = false
  let writes = 0
  const write = async () => {
    for (; isWriting; writes++) {
      const { status } = await busy.call('POST', path, product(10_000 + writes))
      if (status !== 201) throw new Error(`A write was answered ${status}.`)
    }
  }
  const paths = ids.map((id) => `${path}/${id}`)
  const load = {
    url: server.url,
    headers: quiet.headers,
    method: 'GET' as const,
    paths,
    connections: 4,
    seconds: SECONDS,
  }
  const figures = (name: string, { perSecond, p50, p99, errors }: Figures) =>
    `  ${name.padEnd(14)} ${perSecond.toFixed(0).padStart(7)}/s  p50 ${p50.toFixed(2).padStart(6)} ms  p99 ${p99.toFixed(2).padStart(6)} ms${errors ? `  ${errors} ERRORS` : ''}`
  await measure(load)
  const ratios: number[] = []
  for (let round = 0; round < rounds; round++) {
    const alone = await measure(load)
    isWriting = true
    const before = { writes, bytes: await countBytes() }
    const writing = write()
    await Bun.sleep(300)
    const beside = await measure(load)
    isWriting = false
    await writing
    await Bun.sleep(1_000)
    const megabytes = ((await countBytes()) - before.bytes) / 1e6
    ratios.push(beside.perSecond / alone.perSecond)
    console.log(
      `${figures('alone', alone)}\n${figures('beside', beside)}\n  ${writes - before.writes} changes, ${megabytes.toFixed(0)} MB to ${count} subscribers`,
    )
  }
  ratios.sort((one, other) => one - other)
  const median = ratios[rounds >> 1]!
  console.log(
    `reads by id beside ${count} subscribers are ${median.toFixed(2)} of reads alone (${ratios[0]!.toFixed(2)} to ${ratios.at(-1)!.toFixed(2)})`,
  )
  child.kill()
  await server.end('SIGTERM')
}
await database?.stop()
rmSync(runOptions.at, { recursive: true })
process.exit()
