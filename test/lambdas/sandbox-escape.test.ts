import { beforeAll, describe, expect, test } from 'bun:test'
import { config } from '../../src/config'
import { lambdaProcesses } from '../fakes/child-processes'
import { databaseUrl } from '../storage/engines'
import { createTestTenant, type TestResponse } from '../test-tenant'
import { waitUntil } from '../wait-until'
import { createLambda, runOnce, toModule, toResult } from './fixtures'

const attacker = await createTestTenant()
const victim = await createTestTenant()
const admin = attacker.as('admin')
const OPEN = [{ operation: 'read', scope: 'tenant', guest: true }]
for (const { as } of [attacker, victim]) {
  await as('admin').post('/blueprints', { key: 'safe', name: 'Safe', fields: [{ key: 'text', type: 'string' }] })
  await as('admin').post('/blueprints', { key: 'shop', name: 'Shop', fields: [], permissions: OPEN })
}
const { body: secret } = await victim.as('admin').post('/blueprints/safe/entities', { text: 'of another tenant' })

const FAILED = ['LAMBDA_FAILED', expect.any(String)]
const TIMED_OUT = ['LAMBDA_TIMEOUT', expect.any(String)]
const OUT_OF_MEMORY = ['LAMBDA_OUT_OF_MEMORY', expect.any(String)]
/** The speed of the machine decides which limit is reached first. */
const ENDED = expect.stringMatching(/^LAMBDA_(TIMEOUT|OUT_OF_MEMORY|FAILED)$/)
/** What an attempt returns when it learned nothing. */
const NOTHING = 'nothing'

const globalsBefore = Object.getOwnPropertyNames(globalThis).sort()
let memoryBefore = 0
beforeAll(async () => {
  // Other test files may have changed it.
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
  // The first run allocates what all later runs reuse.
  expect(await runOnce(admin, '() => 1')).toBe(1)
  Bun.gc(true)
  memoryBefore = process.memoryUsage.rss()
})

/** The attempt, its code, and the expected outcome. */
const attempts: [string, string, unknown, object?][] = [
  // Ways out of the sandbox.
  ['the constructor of a function', `() => (() => {}).constructor('return typeof process')()`, 'undefined'],
  [
    'the constructor of what atoll gives',
    `(_, a) => a.fetch.constructor('return typeof Bun + typeof process')()`,
    'undefinedundefined',
  ],
  [
    'the constructor of an asynchronous function',
    `async () => (async () => {}).constructor('return typeof require')()`,
    'undefined',
  ],
  ['indirect eval', `() => (0, eval)('typeof globalThis.Bun + typeof globalThis.process')`, 'undefinedundefined'],
  [
    'what is global',
    `() => ['Bun', 'process', 'require', 'module', 'Worker', 'WebAssembly', 'importScripts', 'postMessage', 'Deno', 'self', 'window', 'global', 'print', 'std', 'os', 'bjson'].filter((name) => name in globalThis)`,
    [],
  ],
  ['the global object by this', `() => (function () { return typeof this })()`, 'undefined'],
  ['the callers of a function', `() => { function f() { return f.caller ?? f.arguments } return f() }`, FAILED],
  [
    'the stack of an error',
    `() => { try { null.x } catch (e) { return /\\/|file:|bun|node|process/.test(e.stack) } }`,
    false,
  ],
  [
    'the stack of a refused call',
    `(_, a) => a.entities('none').find().catch((e) => /\\/|file:|bun|node|process/.test(e.stack + Object.keys(e)))`,
    false,
  ],
  [
    'preparing stacks',
    `() => { Error.prepareStackTrace = (_, sites) => sites?.map?.((one) => String(one.getThis?.())); return typeof new Error().stack }`,
    'string',
  ],
  [
    'a dynamic import of addresses',
    `async () => Promise.all(['data:text/javascript,1', 'file:///etc/passwd', './atoll.js', 'https://a.test'].map((one) => import(one).then(() => 1, () => 0)))`,
    [0, 0, 0, 0],
  ],
  ['import.meta', `() => JSON.stringify(import.meta)`, '{}'],
  [
    'a prototype of the host by a polluted one',
    `async (_, a) => { Object.prototype.then = undefined; Object.prototype.isAdmin = true; Array.prototype.toJSON = () => ['x']; return a.entities('none').find().catch((e) => e.code ?? e.message) }`,
    expect.any(String),
  ],
  [
    '__proto__ in JSON',
    `() => JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}')`,
    expect.anything(),
  ],
  [
    '__proto__ in an entity',
    `(_, a) => a.entities('safe').create(JSON.parse('{"text": "x", "__proto__": {"a": 1}}')).catch(({ code }) => code)`,
    'INVALID_INPUT',
  ],
  [
    'thenables that resolve with thenables',
    `() => ({ then(resolve) { resolve({ then(again) { again('told') } }) } })`,
    'told',
  ],
  [
    'replaced built-in functions',
    `async (_, a) => { JSON.stringify = () => '{"status": 1}'; JSON.parse = () => ({}); Promise.prototype.then = () => 1; Map.prototype.get = () => ({ resolve() {} }); String.prototype.slice = () => ({}); return 'still' }`,
    expect.anything(),
  ],
  // Other tenants, and forbidden calls.
  [
    'an entity of another tenant by its id',
    `(_, a) => a.entities('safe').get('${secret._id}').then(() => 'seen', () => '${NOTHING}')`,
    NOTHING,
  ],
  [
    'another tenant in the name of a blueprint',
    `(_, a) => Promise.all(['../${victim.id}/safe', 'safe?tenant=${victim.id}', 'safe/../..', '${victim.id}:safe'].map((name) => a.entities(name).find().then(() => 'seen', () => '${NOTHING}')))`,
    [NOTHING, NOTHING, NOTHING, NOTHING],
  ],
  [
    'another tenant by a query',
    `(_, a) => a.entities('safe').find({ tenant: '${victim.id}' }).then(() => 'seen', () => '${NOTHING}')`,
    NOTHING,
  ],
  [
    'another entity by a path in an identifier',
    `(_, a) => a.entities('safe').get('../../users').then(() => 'seen', () => '${NOTHING}')`,
    NOTHING,
  ],
  [
    'functions that the API does not offer',
    `(_, a) => [typeof a.users, typeof a.db, typeof a.tenant, typeof a.write]`,
    Array(4).fill('undefined'),
  ],
  // The private network.
  [
    'private addresses',
    `(_, a) => Promise.all(['http://127.0.0.1/', 'https://localhost/', 'http://169.254.169.254/', 'https://[::ffff:127.0.0.1]/', 'https://0x7f.1/', 'https://2130706433/'].map((url) => a.fetch(url).then(() => 'seen', () => '${NOTHING}')))`,
    Array(6).fill(NOTHING),
  ],
  [
    'files by fetch',
    `(_, a) => Promise.all(['file:///etc/passwd', 'blob:x', 'data:text/plain,x', '//a.test'].map((url) => a.fetch(url).then(() => 'seen', () => '${NOTHING}')))`,
    Array(4).fill(NOTHING),
  ],
  [
    'a request that is too large',
    `(_, a) => a.fetch('https://a.test/', { method: 'POST', body: 'x'.repeat(1_500_000) }).catch(({ code }) => code)`,
    'INVALID_INPUT',
  ],
  [
    'a request that is far too large',
    `(_, a) => a.fetch('https://a.test/', { method: 'POST', body: 'x'.repeat(5_000_000) })`,
    FAILED,
  ],
  [
    'lines in a header of a request',
    `(_, a) => a.fetch('https://a.test/', { headers: { a: 'b\\r\\nhost: c' } }).catch(({ code }) => code)`,
    'INVALID_INPUT',
  ],
  [
    'lines in a header of the answer',
    `() => ({ status: 200, headers: { a: 'b\\r\\nset-cookie: atoll_x=1' } })`,
    FAILED,
  ],
  // Time.
  ['an endless loop', '() => { for (;;); }', TIMED_OUT],
  [
    'an endless loop where errors are caught',
    '() => { for (;;) try { for (;;); } catch {} finally { for (;;); } }',
    TIMED_OUT,
  ],
  ['an endless loop before anything is exported', '1; for (;;);', TIMED_OUT],
  ['an endless chain of promises', 'async () => { for (;;) await null }', TIMED_OUT],
  [
    'an endless generator',
    '() => [...(function* () { for (;;) yield })()]',
    [ENDED, expect.any(String)],
    { memoryMb: 1 },
  ],
  ['an endless interval', '() => new Promise(() => setInterval(() => {}, 0))', TIMED_OUT],
  [
    'a loop inside the engine, which cannot be interrupted',
    '() => Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)',
    TIMED_OUT,
  ],
  ['another loop inside the engine', '() => Array.prototype.reverse.call({ length: 2 ** 53 - 1 })', TIMED_OUT],
  ['a regular expression without end', `() => /^(a+)+$/.test('a'.repeat(50) + 'b')`, TIMED_OUT],
  ['an endless getter in the result', '() => ({ get a() { for (;;); } })', TIMED_OUT],
  ['an endless toJSON', '() => ({ toJSON() { for (;;); } })', TIMED_OUT],
  [
    'an error whose message never ends',
    '() => { throw Object.defineProperty(new Error(), "message", { get() { for (;;); } }) }',
    TIMED_OUT,
  ],
  ['a timer beyond the time', '() => new Promise((resolve) => setTimeout(resolve, 1e9))', TIMED_OUT],
  ['waiting for a lock', '() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)', FAILED],
  ['a promise that never settles', '() => new Promise(() => {})', FAILED],
  // Memory.
  [
    'lists without end',
    '() => { const all = []; for (;;) all.push(new Array(1e5).fill(1)) }',
    OUT_OF_MEMORY,
    { memoryMb: 1 },
  ],
  ['a list in a list', '() => { let all = []; for (;;) all = [all] }', OUT_OF_MEMORY, { memoryMb: 1 }],
  [
    'texts without end',
    `() => { const all = []; for (let n = 0; ; n++) all.push(String(n).repeat(1e5)) }`,
    OUT_OF_MEMORY,
    { memoryMb: 1 },
  ],
  [
    'bytes without end',
    '() => { const all = []; for (;;) all.push(new Uint8Array(1e6).fill(1)) }',
    OUT_OF_MEMORY,
    { memoryMb: 1 },
  ],
  ['one large buffer', '() => new ArrayBuffer(2 ** 31)', [ENDED, expect.any(String)]],
  ['one large text', `() => 'x'.repeat(2 ** 29)`, OUT_OF_MEMORY],
  [
    'closures without end',
    '() => { let f = () => 1; for (;;) { const g = f; f = () => g } }',
    OUT_OF_MEMORY,
    { memoryMb: 1 },
  ],
  [
    'promises without end',
    '() => { const all = []; for (;;) all.push(new Promise(() => {})) }',
    OUT_OF_MEMORY,
    { memoryMb: 1 },
  ],
  [
    'memory that is allocated again after each failure',
    '() => { const all = []; for (;;) try { for (;;) all.push(new Array(1e5).fill(1)) } catch {} }',
    TIMED_OUT,
    { memoryMb: 1 },
  ],
  ['large numbers', '() => 3n ** (2n ** 40n)', FAILED],
  // The stack.
  ['deep recursion', '() => { const f = () => f() + 1; return f() }', FAILED],
  ['deep recursion by getters', '() => { const o = { get a() { return this.a } }; return o.a }', FAILED],
  [
    'deep recursion by proxies',
    '() => { let p = {}; for (let n = 0; n < 1e5; n++) p = new Proxy(p, {}); return p.x }',
    [ENDED, expect.any(String)],
  ],
  ['JSON that is nested deeply', `() => JSON.parse('['.repeat(1e5))`, FAILED],
  [
    'a result that is nested deeply',
    '() => { let a = []; for (let n = 0; n < 2e5; n++) a = [a]; return a }',
    [ENDED, expect.any(String)],
  ],
  ['code that is nested deeply', `() => eval('('.repeat(1e5))`, FAILED],
  ['a pattern that is nested deeply', `() => new RegExp('(?:'.repeat(1e5))`, FAILED],
  // Results, errors and logs.
  ['a result that refers to itself', '() => { const a = {}; a.a = a; return a }', FAILED],
  ['a result that throws', '() => ({ get a() { throw new Error("x") } })', FAILED],
  ['a result of hostile proxies', '() => new Proxy({}, { ownKeys() { throw 1 }, get() { throw 2 } })', FAILED],
  ['a result without JSON', '() => 1n', FAILED],
  ['a result without end', '() => Array(1e5).fill("xxxxxxxxxx")', FAILED],
  ['an error that throws when it is read', '() => { throw new Proxy({}, { get() { throw 1 } }) }', FAILED],
  [
    'an error with getters',
    '() => { throw { get message() { throw 1 }, toString() { throw 2 }, toJSON() { throw 3 } } }',
    FAILED,
  ],
  ['undefined as an error', '() => { throw undefined }', FAILED],
  ['an unhandled rejection', `() => { Promise.reject(new Error('unheard')); return 'fine' }`, 'fine'],
  ['an error in a timer', `() => new Promise(() => setTimeout(() => { throw new Error('late') }, 1))`, FAILED],
  [
    'a flood of logs',
    `() => { for (let n = 0; n < 5_000; n++) console.log('x'.repeat(1_000)); return 'fine' }`,
    'fine',
    {},
  ],
  ['logs of hostile objects', `() => { console.log(new Proxy({}, { get() { throw 1 } })); return 1 }`, FAILED],
  ['timers without end', '() => { for (;;) setTimeout(() => {}, 1e6) }', FAILED],
  ['calls without end', `(_, a) => { for (;;) a.entities('safe').find() }`, TIMED_OUT],
  ['a call that is too large', `(_, a) => a.entities('safe').create({ text: 'x'.repeat(3_000_000) })`, FAILED],
  ['random bytes without end', '() => crypto.getRandomValues(new Uint8Array(1e6))', FAILED],
  ['a hash of an unknown algorithm', `(_, a) => a.crypto.hash('md4', {})`, FAILED],
]

// The sandbox knows nothing of databases, so once is enough.
describe.skipIf(!!databaseUrl)('attacks on the sandbox', () => {
  test.each(attempts)('the sandbox withstands %s', async (_, body, expected, more = {}) => {
    expect(await runOnce(admin, body, {}, { ...more, timeoutMs: expected === TIMED_OUT ? 100 : 20_000 })).toEqual(
      expected,
    )
  })
})

test.each([
  '() => 1; import fs from "node:fs"; fs',
  'async () => import("node:" + "fs")',
  'async () => import("lambda.js")',
  '() => 1; export * from "data:text/javascript,1"',
])('rejects a lambda that imports a module with 400: %s', async (body) => {
  const { status, body: refused } = await admin.post('/lambdas', { name: 'test', code: toModule(body) })
  expect([status, refused.message]).toEqual([400, expect.stringMatching(/^A lambda cannot import/)])
})

test('the list has more than 60 attacks', () => {
  expect(attempts.length).toBeGreaterThan(60)
})

test('a call that a lambda makes after its end is not executed', async () => {
  const path = await createLambda(
    admin,
    `(_, a) => { setTimeout(() => a.entities('safe').create({ text: 'late' }), 1); return 'over' }`,
  )
  for (let n = 0; n < 3; n++) expect(toResult(await admin.post(`${path}/execute`, {}))).toBe('over')
  expect(await runOnce(admin, 'async () => { await new Promise((r) => setTimeout(r, 20)); return 1 }')).toBe(1)
  expect((await admin.get('/blueprints/safe/entities?text=late')).body).toEqual([])
})

test('a log of more than 64 KiB is truncated and ends with a warning', async () => {
  const path = await createLambda(admin, `() => { for (let n = 0; n < 5_000; n++) console.log('line ' + n) }`)
  const { logs } = (await admin.post(`${path}/execute`, {})).body
  expect(logs.reduce((sum: number, { text }: { text: string }) => sum + text.length, 0)).toBeLessThan(65 << 10)
  expect(logs.at(-1)).toMatchObject({ level: 'warn', text: expect.stringMatching(/truncated/) })
})

test('the logs of a lambda whose process was killed for a timeout are returned', async () => {
  const path = await createLambda(
    admin,
    `() => { console.log('so far'); [].indexOf.call({ length: 2 ** 53 - 1 }, 1) }`,
    { timeoutMs: 300 },
  )
  const { body } = await admin.post(`${path}/execute`, {})
  expect([body.error.code, body.logs.map(({ text }: { text: string }) => text)]).toEqual(['LAMBDA_TIMEOUT', ['so far']])
})

test('a tenant is served while endless lambdas of another tenant run', async () => {
  const path = await createLambda(admin, '() => { for (;;); }', { timeoutMs: 600 })
  const loops = Array.from({ length: 6 }, () => admin.post(`${path}/execute`, {}))
  const servedLambda = await createLambda(victim.as('admin'), '() => "served"')
  expect(toResult(await victim.as('admin').post(`${servedLambda}/execute`, {}))).toBe('served')
  expect((await victim.as('admin').get(`/blueprints/safe/entities/${secret._id}`)).body.text).toBe('of another tenant')
  for (const loop of loops) expect(toResult(await loop)).toEqual(TIMED_OUT)
})

test('a tenant with 100 waiting lambdas gets 503 LAMBDA_BUSY with Retry-After for further ones', async () => {
  const waiting: (() => void)[] = []
  let released = false
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async () => {
      if (!released) await new Promise<void>((resolve) => waiting.push(resolve))
      return new Response('go')
    },
  })
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
  const path = await createLambda(admin, `async () => (await fetch('${server.url}')).text()`, { timeoutMs: 30_000 })
  const execute = (count: number) => Array.from({ length: count }, () => admin.post(`${path}/execute`, {}))
  const running = execute(2)
  await waitUntil(
    async () => waiting.length,
    (count) => count === 2,
  )
  const queued = execute(130)
  const refused: TestResponse[] = []
  for (const one of queued) one.then((answer) => answer.status === 503 && refused.push(answer))
  await waitUntil(
    async () => refused.length,
    (count) => count === 30,
  )
  released = true
  for (const release of waiting) release()
  const answers = await Promise.all([...running, ...queued])
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
  server.stop(true)
  expect(answers.filter(({ status }) => status === 200).map(toResult)).toEqual(Array(102).fill('go'))
  expect(refused).toHaveLength(30)
  expect([refused[0]!.body.code, refused[0]!.headers.get('retry-after')]).toEqual(['LAMBDA_BUSY', '1'])
})

test('the globals, the memory and the number of sandbox processes of the server are unchanged after all attacks', async () => {
  expect(Object.getOwnPropertyNames(globalThis).sort()).toEqual(globalsBefore)
  expect(({} as { polluted?: number; isAdmin?: boolean }).polluted).toBeUndefined()
  expect(await runOnce(admin, '() => 1')).toBe(1)
  if (process.platform === 'linux') {
    const most = config.ATOLL_LAMBDA_PROCESSES
    expect(
      await waitUntil(
        async () => lambdaProcesses().length,
        (count) => count <= most,
      ),
    ).toBeLessThanOrEqual(most)
  }
  Bun.gc(true)
  expect(process.memoryUsage.rss() - memoryBefore).toBeLessThan(150 << 20)
})
