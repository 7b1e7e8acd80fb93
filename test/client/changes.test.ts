// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { AnyKind } from '../../client/src/any-kind'
import { createClient, type EntityChange, type Options } from '../../client/src/index'
import { hasBrowser } from '../fakes/browser'
import { startAtoll } from '../fakes/cli'
import { startCuttingProxy } from '../fakes/cutting-proxy'
import { errorOf } from '../rejections'
import { waitUntil } from '../wait-until'
import { bundleForBrowser, openForeignProgram, openProgram } from './client-page'
import { type ClientServer, startClientServer, TENANT } from './client-server'

setDefaultTimeout(120_000)

let server: ClientServer
beforeAll(async () => {
  server = await startClientServer()
})
afterAll(async () => void (await server?.[Symbol.asyncDispose]()))

type Task = { identifier: string }
type Change = EntityChange<Task>
const describeChange = (change: Change) =>
  'entity' in change
    ? `${change.type} ${change.entity.identifier}`
    : [change.type, 'identifier' in change && change.identifier].filter(Boolean).join(' ')

/** Follows the tasks of the server in the background, until the block ends. */
function follow(url: string, apiKey: string, more: Partial<Options> = {}) {
  const controller = new AbortController()
  const changes: string[] = []
  const client = createClient<Record<string, AnyKind>>({ url, tenant: TENANT, apiKey, ...more })
  const run = async () => {
    for await (const change of client.entities('tasks').changes({}, { signal: controller.signal }))
      changes.push(describeChange(change as Change))
  }
  const ended = run().catch((error: unknown) => error)
  const stop = () => {
    controller.abort()
    return ended
  }
  return { changes, stop, ended, [Symbol.asyncDispose]: async () => void (await stop()) }
}
const clientOf = (url: string, apiKey: string) =>
  createClient<Record<string, AnyKind>>({ url, tenant: TENANT, apiKey }).entities('tasks')
const numbered = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}-${n}`)

describe('changes() of the client', () => {
  test('changes() yields what happens to the entities that match, and throws the reason of an abort', async () => {
    const tasks = clientOf(server.url, server.apiKey)
    const controller = new AbortController()
    const seen: string[] = []
    const open = tasks.changes({ done: false }, { signal: controller.signal })
    const reading = (async () => {
      for await (const change of open) seen.push(describeChange(change as Change))
    })()
    await waitUntil(() => seen.includes('ready'))
    await tasks.create({ identifier: 'bread', title: 'Buy bread' })
    await tasks.create({ identifier: 'over', title: 'Already done', done: true })
    await tasks.change('bread', { points: 2 })
    await tasks.change('bread', { done: true })
    await waitUntil(() => seen.length === 4)
    controller.abort(new Error('That is enough.'))
    expect((await errorOf(reading)).message).toContain('That is enough.')
    expect(seen).toEqual(['ready', 'create bread', 'update bread', 'delete bread'])
  })

  test('changes() goes on after a connection was cut in the middle, and nothing is missing or comes twice', async () => {
    const proxy = await startCuttingProxy(server.server)
    using _ = { [Symbol.dispose]: () => proxy.stop() }
    const proxied = `http://127.0.0.1:${proxy.port}`
    await using followed = follow(proxied, server.apiKey)
    await waitUntil(() => followed.changes.includes('ready'))
    const tasks = clientOf(server.url, server.apiKey)
    const names = numbered('cut', 30)
    for (const [n, identifier] of names.entries()) {
      await tasks.create({ identifier, title: 'x' })
      if (n % 7 === 3) proxy.cutAll()
    }
    await waitUntil(() => followed.changes.length > names.length)
    expect(followed.changes).toEqual(['ready', ...names.map((name) => `create ${name}`)])
  })

  test('changes() goes on after the server was killed and started again, and nothing is missing', async () => {
    await using own = await startClientServer()
    const { port } = own.server
    await using followed = follow(own.url, own.apiKey)
    await waitUntil(() => followed.changes.includes('ready'))
    const tasks = clientOf(own.url, own.apiKey)
    const [before, after] = [numbered('before', 5), numbered('after', 5)]
    for (const identifier of before) await tasks.create({ identifier, title: 'x' })
    await own.server.end('SIGKILL')
    await using _restarted = await startAtoll({ ...own.at, env: { ...own.at.env, ATOLL_PORT: `${port}` } })
    // The stream may connect again after these.
    for (const identifier of after) await tasks.create({ identifier, title: 'x' })
    await waitUntil(() => followed.changes.length >= 11, Boolean, 30_000)
    expect(followed.changes).toEqual(['ready', ...[...before, ...after].map((name) => `create ${name}`)])
  })

  test('changes() ends with the error when the server refuses it for good', async () => {
    const followed = follow(server.url, 'atl_unknown')
    expect(await followed.ended).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' })
    const unknown = createClient<Record<string, AnyKind>>({ url: server.url, tenant: TENANT, apiKey: server.apiKey })
      .entities('nothing')
      .changes()
    expect(await errorOf(unknown.next())).toMatchObject({ code: 'BLUEPRINT_NOT_FOUND' })
  })

  test('changes() is not disturbed when its access token expires', async () => {
    const items = new Map<string, string>()
    const storage = {
      getItem: (key: string) => items.get(key) ?? null,
      setItem: (key: string, value: string) => items.set(key, value),
      removeItem: (key: string) => items.delete(key),
    }
    const client = createClient<Record<string, AnyKind>>({ url: server.url, tenant: TENANT, storage })
    await client.signUp({ username: 'listener', password: 'correct horse battery' })
    for (const [key, text] of items) items.set(key, JSON.stringify({ ...JSON.parse(text), token: 'x.y.z' }))
    for await (const { type } of client.entities('tasks').changes()) {
      expect(type).toBe('ready')
      break
    }
  })
})

const PROGRAM = `
import { createClient } from './atoll'
// React Native has responses without a body, and XMLHttpRequest.
delete (Response.prototype as { body?: unknown }).body
const client = createClient<Record<string, AnyKind>>({ url: location.origin, tenant: '${TENANT}', apiKey: (new URL(location.href)).hash.slice(1) })
Object.assign(globalThis, { client, seen: [], errors: [] })
`

const CROSS_ORIGIN_PROGRAM = (url: string) => `
import { createClient } from './atoll'
const client = createClient({ url: '${url}', tenant: '${TENANT}' })
async function visit() {
  await client.signUp({ username: 'visitor', password: 'correct horse battery' })
  const tasks = client.entities('tasks')
  const changes = tasks.changes({ title: 'Foreign' })
  const seen = [(await changes.next()).value.type]
  await tasks.batch(['a', 'b', 'c'].map((name) => ({ op: 'create', data: { title: 'Foreign' } })))
  seen.push((await changes.next()).value.type)
  let count = 0
  for await (const task of tasks.each({ title: 'Foreign', $limit: 1 })) count++
  const error = await tasks.get('nothing').catch((error) => error)
  await client.signOut()
  return [...seen, count, error.code, !!error.requestId]
}
Object.assign(globalThis, { visit })
`

describe.skipIf(!hasBrowser)('the client in a page of another origin', () => {
  test('a page of another origin signs up, listens, reads page by page, and learns the ids of failed requests', async () => {
    const program = await bundleForBrowser({ 'atoll.ts': server.atoll, 'program.ts': CROSS_ORIGIN_PROGRAM(server.url) })
    await using opened = await openForeignProgram(program)
    expect(await opened.page.evaluate<unknown>('visit()')).toEqual(['ready', 'create', 3, 'ENTITY_NOT_FOUND', true])
  })
})

describe.skipIf(!hasBrowser)('the client where responses cannot be read as streams', () => {
  test('changes, answers of agents, exports and the progress of uploads come by XMLHttpRequest', async () => {
    const bundle = await bundleForBrowser({
      'atoll.ts': server.atoll,
      'program.ts': PROGRAM.replace('(new URL(location.href)).hash.slice(1)', JSON.stringify(server.apiKey)),
    })
    await using opened = await openProgram(server.url, bundle)
    const { page } = opened
    void page
      .evaluate(
        `(async () => { for await (const one of client.entities('tasks').changes({ title: 'Native' })) seen.push(one.type) })()`,
      )
      .catch(() => {}) // the page is closed while it listens
    await page.waitForFunction(`seen.includes('ready')`)
    await page.evaluate(`client.entities('tasks').create({ identifier: 'native', title: 'Native' }).then(() => {})`)
    await page.waitForFunction(`seen.includes('create')`)
    const words = `(async () => { const parts = []; for await (const part of client.ai.stream(${JSON.stringify(server.agent._id)}, { messages: 'one two three' })) parts.push(part.text ?? part.type); return parts.join('|') })()`
    expect(await page.evaluate<string>(words)).toBe('one |two |three|end')
    const exported = `Array.fromAsync(client.entities('tasks').export({ title: 'Native' })).then((all) => all.length)`
    expect(await page.evaluate<number>(exported)).toBe(1)
    const progress = `(async () => { const steps = []; await client.files.upload(new Blob(['x'.repeat(3_000_000)]), { onProgress: ({ sent, total }) => steps.push(sent / total) }); return steps })()`
    const steps = await page.evaluate<number[]>(progress)
    expect(steps.at(-1)).toBe(1)
    expect(steps).toEqual([...steps].sort((a, b) => a - b))
    const refused = `(async () => { try { for await (const _ of client.entities('nothing').changes()) break } catch (error) { return error.code } })()`
    expect(await page.evaluate<string>(refused)).toBe('BLUEPRINT_NOT_FOUND')
  })
})
