// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { apiCaller, createTempFolder, createTenantByCli, type RunningAtoll, signIn, startAtoll } from '../fakes/cli'

setDefaultTimeout(60_000)

const COUNT = 20_000
const path = '/api/blueprints/things'
const thingsBlueprint = {
  key: 'things',
  name: 'Things',
  fields: [
    { key: 'name', type: 'string' },
    { key: 'size', type: 'integer' },
  ],
  permissions: ['create', 'read'].map((operation) => ({ operation, scope: 'tenant', roleBased: ['admin'] })),
}

/** Returns how many threads of a process have less priority than its main thread. */
const countLowThreads = (pid: number) => {
  const main = getPriority(pid)
  return readdirSync(`/proc/${pid}/task`).filter((thread) => getPriority(Number(thread)) > main).length
}

describe.skipIf(process.platform !== 'linux')('the binary with reader threads', () => {
  const at = createTempFolder()
  let server: RunningAtoll
  let headers: Record<string, string>

  beforeAll(async () => {
    await createTenantByCli({ at }, 'acme')
    server = await startAtoll({ at })
    headers = await signIn(server.url, 'acme')
    const call = apiCaller(server.url, headers)
    expect((await call('POST', '/api/blueprints', thingsBlueprint)).status).toBe(201)
    const lines = Array.from({ length: COUNT }, (_, size) => JSON.stringify({ name: `Thing ${size}`, size }))
    const imported = await fetch(`${server.url}${path}/entities/import?format=ndjson`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/x-ndjson' },
      body: lines.join('\n'),
    })
    expect(await imported.json()).toMatchObject({ imported: COUNT })
  })
  afterAll(() => server[Symbol.asyncDispose]())

  test('a thread with less priority answers an export, and others answer counted lists and charts', async () => {
    expect(countLowThreads(server.pid)).toBe(0)
    const exported = await fetch(`${server.url}${path}/entities/export`, { headers })
    expect((await exported.text()).trim().split('\n')).toHaveLength(COUNT)
    expect(countLowThreads(server.pid)).toBeGreaterThan(0)
    const call = apiCaller(server.url, headers)
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => call('GET', `${path}/entities?size[$gte]=${n}&name[$gte]=T&$count=true`)),
    )
    expect(answers.map(({ headers }) => Number(headers.get('x-total-count')))).toEqual(
      Array.from({ length: 12 }, (_, n) => COUNT - n),
    )
    expect((await call('GET', `${path}/charts/sum?sum=size`)).body).toEqual({ sum: (COUNT * (COUNT - 1)) / 2 })
  })

  test('a client that leaves during an export, and a stop in the middle of another, leave one complete file', async () => {
    const aborter = new AbortController()
    const left = await fetch(`${server.url}${path}/entities/export`, { headers, signal: aborter.signal })
    await left.body!.getReader().read()
    aborter.abort()
    const running = await fetch(`${server.url}${path}/entities/export`, { headers })
    const reader = running.body!.getReader()
    await reader.read()
    await reader.cancel()
    expect(await server.end('SIGTERM')).toBe(0)
    expect(readdirSync(join(at, 'tenants', 'acme'))).toEqual(['data.db'])
  })
})
