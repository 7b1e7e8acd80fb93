// engine: sqlite
import { describe, expect, test } from 'bun:test'
import type { AnyKind } from '../../client/src/any-kind'
import { AtollError, createClient, type Options, VERSION, type Versions } from '../../client/src/index'
import { version } from '../../package.json'
import { errorOf } from '../rejections'

/** Starts a server that answers one response after the other, and notes what it was asked. */
function startServer(...answers: (() => Response)[]) {
  const asked: Request[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => {
      asked.push(request)
      return (answers.length > 1 ? answers.shift()! : answers[0]!)()
    },
  })
  const clientOf = (options: Partial<Options> = {}) =>
    createClient<Record<string, AnyKind>>({ url: `http://127.0.0.1:${server.port}`, ...options })
  return { asked, clientOf, [Symbol.asyncDispose]: () => server.stop(true) }
}

const busy =
  (seconds = '0') =>
  () =>
    Response.json({ code: 'BUSY', message: 'Too much to do.' }, { status: 503, headers: { 'retry-after': seconds } })
const done = () => Response.json([])
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'none',
    (error) => error.code,
  )

describe('a request of the client', () => {
  test('a busy server is asked again after the time that it names', async () => {
    await using server = startServer(busy(), busy(), done)
    expect(await server.clientOf().entities('tasks').list()).toEqual([])
    expect(server.asked).toHaveLength(3)
  })

  test('a server that stays busy is asked four times at most', async () => {
    await using server = startServer(busy())
    expect(await codeOf(server.clientOf().workspaces.list())).toBe('BUSY')
    expect(server.asked).toHaveLength(4)
  })

  test('a server that names a long time, or none, is not asked again', async () => {
    await using slow = startServer(busy('600'))
    expect(await codeOf(slow.clientOf().workspaces.list())).toBe('BUSY')
    await using silent = startServer(() => Response.json({ code: 'BUSY' }, { status: 503 }))
    expect(await codeOf(silent.clientOf().workspaces.list())).toBe('BUSY')
    expect([slow.asked.length, silent.asked.length]).toEqual([1, 1])
  })

  test('a write is repeated only with an idempotency key', async () => {
    await using server = startServer(busy())
    const tasks = server.clientOf().entities('tasks')
    expect(await codeOf(tasks.create({ title: 'x' }))).toBe('BUSY')
    expect(server.asked).toHaveLength(1)
    expect(await codeOf(tasks.create({ title: 'x' }, { headers: { 'Idempotency-Key': 'k' } }))).toBe('BUSY')
    expect(server.asked).toHaveLength(5)
  })

  test('an abort ends the wait for a busy server', async () => {
    await using server = startServer(busy('10'))
    const started = performance.now()
    const listing = server.clientOf().workspaces.list({}, { signal: AbortSignal.timeout(50) })
    await errorOf(listing)
    expect(performance.now() - started).toBeLessThan(5_000)
  })

  test('an error has the code, the message, the details, the status and the id of the request', async () => {
    const problem = { code: 'TASK_EXISTS', message: 'Choose another name.', details: { index: 1 } }
    await using server = startServer(() => Response.json(problem, { status: 409, headers: { 'x-request-id': 'r1' } }))
    const error = await server
      .clientOf()
      .workspaces.create({ name: 'x' })
      .catch((error) => error)
    expect(error).toBeInstanceOf(AtollError)
    expect(error).toMatchObject({ ...problem, status: 409, requestId: 'r1', name: 'AtollError' })
  })

  test('the address of a file names its thumbnail and whether it is saved', () => {
    const { files } = createClient({ url: 'https://shop.example.com' })
    const file = { url: '/api/files/1/a%20b.png' }
    expect(files.url(file)).toBe('https://shop.example.com/api/files/1/a%20b.png')
    expect(files.url(file, { thumb: '300x200', fit: 'inside', download: true })).toBe(
      'https://shop.example.com/api/files/1/a%20b.png?thumb=300x200&fit=inside&download=',
    )
    expect(files.url(file, { thumb: '300x200' })).toBe('https://shop.example.com/api/files/1/a%20b.png?thumb=300x200')
  })
})

describe('the version of the client', () => {
  const answering = (server: string) => () => Response.json({}, { headers: { 'x-atoll-version': server } })
  const [major = 0, minor = 0, patch = 0] = VERSION.split('.').map(Number)

  test('the client has the version of the server and of its package', async () => {
    expect(VERSION).toBe(version)
    expect((await Bun.file('client/package.json').json()).version).toBe(version)
  })

  test('another version of the server is reported once', async () => {
    await using server = startServer(answering(`${major}.${minor + 1}.0`))
    const reported: Versions[] = []
    const client = server.clientOf({ onVersionMismatch: (versions) => reported.push(versions) })
    await client.me()
    await client.me()
    expect(reported).toEqual([{ client: VERSION, server: `${major}.${minor + 1}.0` }])
  })

  test('a server of the same minor version, and one that says none, are not reported', async () => {
    await using patched = startServer(answering(`${major}.${minor}.${patch + 1}`))
    await using silent = startServer(done)
    const onVersionMismatch = () => {
      throw new Error('It was reported.')
    }
    for (const server of [patched, silent]) await server.clientOf({ onVersionMismatch }).me()
  })
})
