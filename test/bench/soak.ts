// `bun test/bench/soak.ts <sqlite | postgres> [minutes]`: mixed load with faults, one after the other: the server is
// killed, its clock jumps, its disk is full, its upstream is slow or dead, PostgreSQL is killed. In the end every
// acknowledged write has to be there, no job may be stuck, and memory has to be flat. Run it as root, so that a small
// disk can be mounted.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  apiCaller,
  createTenantByCli,
  type RunningAtoll,
  runAtoll,
  SOURCE_COMMAND,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { createTempFolder } from '../temp-folder'

const [engine = 'sqlite', minutes = '20'] = process.argv.slice(2)
const [TENANTS, WRITERS_PER_TENANT, PHASE_MS, PAUSE_MS] = [3, 3, 15_000, 10]
const TOKEN = 'the-operator-token-of-the-soak'
const end = performance.now() + Number(minutes) * 60_000

const at = createTempFolder('soak')
const mounted = Bun.spawnSync([
  'mount',
  '-t',
  'tmpfs',
  '-o',
  `size=${500 + 150 * Number(minutes)}m`,
  'tmpfs',
  at,
]).success
process.once('exit', () => {
  if (mounted) Bun.spawnSync(['umount', '-l', at])
  rmSync(at, { recursive: true, force: true })
})
const postgres = engine === 'postgres' ? await startPostgres({ durable: true }) : undefined
const receiver = startWebhookReceiver()
const env = {
  ...{ ATOLL_DURABILITY: 'full', ATOLL_OPERATOR_TOKEN: TOKEN, ATOLL_TEST_CLOCK: 'on', ATOLL_LOG_LEVEL: 'error' },
  ...{ ATOLL_ALLOW_PRIVATE_NETWORK: 'on', ATOLL_MIN_FREE: '1M', ATOLL_PLUGIN_TIMEOUT: '2000' },
  ...(postgres && { ATOLL_DATABASE_URL: postgres.url }),
}
const run = { at, env, program: SOURCE_COMMAND }
if (postgres) await runAtoll('postgres init', run)
const tenants = Array.from({ length: TENANTS }, (_, n) => `soak${n}`)
for (const id of tenants) await createTenantByCli(run, id)

let server: RunningAtoll = await startAtoll(run)
let isServing = true
const acknowledged = new Map<string, Set<string>>(tenants.map((id) => [id, new Set()]))
const answers = new Map<string, number>()
const errors: string[] = []
const THINGS = '/api/blueprints/things/entities'

for (const id of tenants) {
  const call = apiCaller(server.url, await signIn(server.url, id))
  const permissions = ['create', 'read', 'update'].map((operation) => ({
    operation,
    scope: 'tenant',
    roleBased: ['admin'],
  }))
  await call('POST', '/api/blueprints', {
    key: 'things',
    name: 'Things',
    fields: [{ key: 'text', type: 'text' }],
    permissions,
  })
  await call('POST', '/api/plugins', {
    ...{ name: 'p', type: 'plugin', url: receiver.url },
    subscribedEvents: [{ source: '*', kind: 'order', eventName: '*', hookUrl: `${receiver.url}/hooks` }],
  })
}

const isRunning = () => performance.now() < end

async function writeForever(id: string) {
  let headers: Record<string, string> | undefined
  while (isRunning()) {
    try {
      headers ??= await signIn(server.url, id)
      const call = apiCaller(server.url, headers)
      const identifier = crypto.randomUUID()
      const { status, body } = await call('POST', THINGS, { identifier, text: 'x'.repeat(500) })
      count(status, body.code)
      if (status === 201) acknowledged.get(id)!.add(identifier)
      if (status === 401) headers = undefined
      if (Math.random() < 0.05)
        await call('POST', '/api/events', { source: 'shop', kind: 'order', eventName: 'placed' })
      if (Math.random() < 0.1) count((await call('GET', `${THINGS}?$limit=20&$sort=-created`)).status)
    } catch {
      // The server is down, or was killed during the request; what it did not answer counts as nothing.
      headers = undefined
      await Bun.sleep(isServing ? 20 : 200)
    }
    await Bun.sleep(PAUSE_MS)
  }
}

function count(status: number, code = '') {
  const name = `${status} ${code}`.trim()
  answers.set(name, (answers.get(name) ?? 0) + 1)
  if (status === 500) errors.push(name)
}

const operator = (method: string, path: string, body?: unknown) =>
  apiCaller(server.url, { authorization: `Bearer ${TOKEN}` })(method, `/operator${path}`, body)
const setClock = (offset: number) => operator('POST', '/clock', { now: new Date(Date.now() + offset).toISOString() })

async function restart(signal: 'SIGKILL' | 'SIGTERM') {
  isServing = false
  await server.end(signal)
  server = await startAtoll(run)
  isServing = true
}

const ballast = join(at, 'ballast')
const faults: Record<string, () => Promise<unknown>> = {
  'no fault': () => Bun.sleep(PHASE_MS),
  'kill -9': async () => {
    for (let kill = 0; kill < 3; kill++) {
      await Bun.sleep(PHASE_MS / 4)
      await restart('SIGKILL')
    }
  },
  'clock jumps': async () => {
    for (const offset of [3_600_000, -3_600_000, 86_400_000, 0]) {
      await setClock(offset)
      await Bun.sleep(PHASE_MS / 5)
    }
  },
  'slow upstream': async () => {
    receiver.answer = async () => {
      await Bun.sleep(5_000)
      return 200
    }
    await Bun.sleep(PHASE_MS)
    receiver.answer = () => 200
  },
  'dead upstream': async () => {
    receiver.answer = () => 503
    await Bun.sleep(PHASE_MS)
    receiver.answer = () => 200
  },
  ...(mounted &&
    !postgres && {
      'full disk': async () => {
        for (const size of [64 << 20, 4 << 20, 256 << 10, 4_096]) fillDisk(size)
        await Bun.sleep(PHASE_MS / 2)
        Bun.spawnSync(['sh', '-c', `rm -f ${ballast}*`])
        await Bun.sleep(PHASE_MS / 2)
      },
    }),
  ...(postgres && {
    'PostgreSQL is killed': async () => {
      await postgres.kill()
      await Bun.sleep(PHASE_MS / 5)
      await postgres.start()
      await Bun.sleep(PHASE_MS / 2)
    },
  }),
}

/** Writes files of a size until the disk has no room for another. */
function fillDisk(size: number) {
  for (let part = 0, hasRoom = true; hasRoom; part++)
    try {
      writeFileSync(`${ballast}-${size}-${part}`, Buffer.alloc(size), { flush: true })
    } catch {
      hasRoom = false // which is what this is for
    }
}

const readMemory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))![1]) / 1_000
const writers = tenants.flatMap((id) => Array.from({ length: WRITERS_PER_TENANT }, () => writeForever(id)))
const memory: number[] = []
while (isRunning())
  for (const [name, cause] of Object.entries(faults)) {
    if (!isRunning()) break
    await cause()
    if (name === 'dead upstream') memory.push(readMemory())
    const written = acknowledged.values().reduce((sum, { size }) => sum + size, 0)
    console.log(
      `${Math.round((end - performance.now()) / 1_000)} s left, ${name}: ${written} writes, ${readMemory().toFixed(0)} MB`,
    )
  }
await Promise.all(writers)

/** Waits until no job is due any more. */
async function countStuckJobs(): Promise<number> {
  const until = performance.now() + 120_000
  for (;;) {
    const { body } = await operator('GET', '/health')
    const stuck = body.jobs.waiting + body.jobs.failing
    if (!stuck || performance.now() > until) return stuck
    for (const tenant of tenants) await operator('POST', '/jobs/run', { tenant })
    await Bun.sleep(1_000)
  }
}

await setClock(0)
const stuck = await countStuckJobs()
await restart('SIGTERM')
let lost = 0
for (const id of tenants) {
  const call = apiCaller(server.url, await signIn(server.url, id))
  for (const identifier of acknowledged.get(id)!) {
    const { status } = await call('GET', `${THINGS}/${identifier}`)
    if (status !== 200) lost++
  }
}
const total = acknowledged.values().reduce((sum, { size }) => sum + size, 0)
console.log(`answers: ${[...answers].map(([name, times]) => `${name}: ${times}`).join(', ')}`)
console.log(`${total} acknowledged writes, ${lost} lost; ${stuck} jobs stuck; ${errors.length} answers 500`)
console.log(`memory after each round: ${memory.map((mb) => mb.toFixed(0)).join(', ')} MB`)
const doctor = await runAtoll('doctor --deep', run)
console.log(doctor.code ? doctor.out : 'doctor: no problem')
await server.end('SIGTERM')
await Promise.all([receiver.stop(), postgres?.stop()])
process.exit(lost || stuck || errors.length || doctor.code ? 1 : 0)
