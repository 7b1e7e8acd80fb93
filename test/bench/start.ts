// `bun test/bench/start.ts [starts] [binary]`: how long the server takes from its start to its first answers, in an empty
// folder and with a tenant, from the binary and from source, and what memory it holds once it idles.
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { resolve } from 'node:path'
import { apiCaller, createTenantByCli, SOURCE_COMMAND, signIn, startAtoll } from '../fakes/cli'
import { findFreePort } from '../fakes/pebble'
import { createTempFolder } from '../temp-folder'
import { note, notesBlueprint } from './sample-data'

const STARTS = Number(process.argv[2] ?? 11)
const BINARY = process.argv[3] ?? 'dist/atoll'
const RETRY_MS = 1 // between two attempts to connect
const IDLE_MS = 5_000 // until memory is read

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!

/** Resolves with the first part of the answer to a request, or undefined when nobody listens yet. */
const tryRequest = (port: number, head: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${head}\r\nConnection: close\r\n\r\n`))
    socket.on('data', (bytes) => resolve(bytes.toString('latin1')))
    socket.on('error', () => resolve(undefined))
  })

async function requestUntilAnswered(port: number, head: string) {
  for (;;) {
    const answer = await tryRequest(port, head)
    if (answer) return answer
    await Bun.sleep(RETRY_MS)
  }
}

async function requireSuccess(port: number, head: string) {
  const answer = await requestUntilAnswered(port, head)
  if (!/^HTTP\/1\.1 2/.test(answer)) throw new Error(answer)
}

/** Returns memory of a process, in MB: what is resident, its share of what is shared, and what is not of a file. */
function readMemory(pid: number) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const read = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)![1]) / 1_024
  return { resident: read('Rss'), proportional: read('Pss'), anonymous: read('Anonymous') }
}

type Sample = { healthMs: number; entitiesMs?: number; memory?: ReturnType<typeof readMemory> }

/** Starts a server and asks it for its health, and for entities if there is a token. */
async function startOnce(program: string[], at: string, token?: string, isMeasuredIdle = false): Promise<Sample> {
  const port = await findFreePort()
  const startedAt = performance.now()
  const child = Bun.spawn([...program, 'serve'], {
    cwd: at,
    env: { PATH: process.env.PATH, ATOLL_PORT: `${port}`, ATOLL_LOG_LEVEL: 'error' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  try {
    await requireSuccess(port, 'GET /health HTTP/1.1\r\nHost: localhost')
    const sample: Sample = { healthMs: performance.now() - startedAt }
    if (token) {
      await requireSuccess(
        port,
        `GET /api/blueprints/notes/entities HTTP/1.1\r\nHost: localhost\r\nx-api-key: ${token}`,
      )
      sample.entitiesMs = performance.now() - startedAt
    }
    if (isMeasuredIdle) {
      await Bun.sleep(IDLE_MS)
      sample.memory = readMemory(child.pid)
    }
    return sample
  } finally {
    child.kill('SIGKILL')
    await child.exited
  }
}

/** Makes a tenant with a blueprint and one entity. Returns a token of its administrator. */
async function prepareTenant(program: string[], at: string): Promise<string> {
  await createTenantByCli({ at, program }, 'main')
  await using server = await startAtoll({ at, program })
  const call = apiCaller(server.url, await signIn(server.url, 'main'))
  const create = async (path: string, thing: object) => {
    const { status, body } = await call('POST', path, thing)
    if (status !== 201) throw new Error(JSON.stringify(body))
    return body
  }
  await create('/api/blueprints', notesBlueprint)
  await create('/api/blueprints/notes/entities', note(0))
  const { token } = await create('/api/me/api-tokens', { nickname: 'bench' })
  return token
}

const inMs = (value: number) => `${value.toFixed(0)} ms`
const inMb = (value: number) => `${value.toFixed(0)} MB`

async function measure(name: string, program: string[], prepare: () => { at: string; token?: string }) {
  const samples: Sample[] = []
  for (let start = 0; start <= STARTS; start++) {
    const { at, token } = prepare()
    samples.push(await startOnce(program, at, token, start === STARTS))
  }
  const last = samples.pop()!
  const health = samples.map(({ healthMs }) => healthMs)
  const entities = samples.flatMap(({ entitiesMs }) => entitiesMs ?? [])
  const { resident, proportional, anonymous } = last.memory!
  console.log(
    [
      name.padEnd(24),
      `first answer ${inMs(median(health))} (best ${inMs(Math.min(...health))})`,
      ...(entities.length ? [`first entities ${inMs(median(entities))}`] : []),
      `resident ${inMb(resident)}, proportional ${inMb(proportional)}, anonymous ${inMb(anonymous)}`,
    ].join('; '),
  )
}

const programs = { binary: [resolve(BINARY)], source: SOURCE_COMMAND }
for (const [name, program] of Object.entries(programs)) {
  await measure(`${name}, empty folder`, program, () => ({ at: createTempFolder() }))
  const at = createTempFolder()
  const token = await prepareTenant(program, at)
  await measure(`${name}, with a tenant`, program, () => ({ at, token }))
}
