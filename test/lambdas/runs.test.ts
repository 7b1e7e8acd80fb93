import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import type { PublicCtx } from '../../src/accounts/context'
import { registerUser } from '../../src/accounts/users/users'
import { config } from '../../src/config'
import { DAY_MS, moveClock } from '../../src/core/clock'
import { log } from '../../src/core/log'
import type { Problem } from '../../src/core/problem'
import { withLease } from '../../src/jobs/with-lease'
import { hostCalls, serveCalls } from '../../src/lambdas/host-api/host-api'
import { httpToLambdaRequest, inputToLambdaRequest } from '../../src/lambdas/request'
import { toResponse } from '../../src/lambdas/response'
import { type RunOptions, runLambda } from '../../src/lambdas/run'
import { countSecondsToday, recordRun, removeOld } from '../../src/lambdas/runs'
import { runs } from '../../src/lambdas/tables'
import * as dailyUse from '../../src/limits/daily-use'
import { expectToTakeTurns } from '../costly-reads'
import { TIME } from '../expectations'
import { denyPrivateNetwork, times } from '../plugins/fixtures'
import { useTestArea } from '../test-area'
import { apiClient, createTestTenant, fullAccessRules, statusAndCode } from '../test-tenant'
import { waitUntil } from '../wait-until'
import { createLambda, runOnce, toResult } from './fixtures'

/** What the host call `test.hold` does in the test that uses it. */
let holdCall: (n: number) => Promise<unknown> = async () => {}
useTestArea({ provides: [hostCalls.provide({ 'test.hold': (_, n) => holdCall(n as number) })] })

const testTenant = await createTestTenant()
const admin = testTenant.as('admin')
await admin.post('/blueprints', {
  key: 'notes',
  name: 'Notes',
  fields: [
    { key: 'text', type: 'string', required: true },
    { key: 'n', type: 'integer' },
  ],
  permissions: [...fullAccessRules('user', 'user'), ...fullAccessRules('tenant', 'keeper')],
})

/** Runs a lambda for an actor, as a webhook does. */
async function runFor(
  actor: PublicCtx['actor'],
  path: string,
  options: Partial<RunOptions> = {},
  lambdaRequest = inputToLambdaRequest({}),
) {
  const ctx = { ...testTenant.tenant, actor }
  return runLambda(ctx, path.slice('/lambdas/'.length), lambdaRequest, { trigger: 'webhook', ...options })
}
const runAnonymously = async (body: string, options: Partial<RunOptions> = {}) =>
  runFor(undefined, await createLambda(admin, body), options)
const readRefusal = (running: Promise<unknown>) =>
  running.then(
    (answer) => [answer],
    ({ status, code }: Problem) => [status, code],
  )
const readReason = (running: Promise<unknown>) => running.catch(({ message }: Problem) => message)
const user = { user: testTenant.users.user, roles: ['user'], privileged: false, workspace: null, scopes: [] }
const asUser = { ...user, via: 'api-key' as const }

describe('POST /lambdas/:id/execute', () => {
  test('a run returns the result of the lambda, its logs and its duration', async () => {
    const path = await createLambda(
      admin,
      `async (request, atoll) => {
        console.log('a', 1, { b: [null, true] }, undefined)
        atoll.log('b')
        console.error(new Error('c').message)
        return { ...request, headers: undefined }
      }`,
    )
    const input = { method: 'PUT', path: '/x', query: { a: '1' }, headers: { b: 'c' }, body: { d: 1 }, event: { e: 2 } }
    const { body } = await admin.post(`${path}/execute`, input)
    expect(body).toEqual({
      result: {
        ...{ method: 'PUT', path: '/x', query: { a: '1' }, body: { d: 1 }, rawBody: '{"d":1}', event: { e: 2 } },
        ...{ user: { _id: testTenant.users.admin, username: 'admin', roles: ['admin', 'user'] }, workspace: null },
      },
      logs: [
        { at: expect.any(Number), level: 'info', text: 'a 1 {"b":[null,true]} undefined' },
        { at: expect.any(Number), level: 'info', text: 'b' },
        { at: expect.any(Number), level: 'error', text: 'c' },
      ],
      durationMs: expect.any(Number),
    })
    // The body of the request is optional.
    expect((await admin.post(`${path}/execute`)).body.result).toMatchObject({ method: 'POST', body: null, query: {} })
    expect(statusAndCode(await admin.post(`${path}/execute`, { method: 5 }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a run of a lambda that throws returns the error with its stack and the logs up to it', async () => {
    const path = await createLambda(admin, '() => { console.log("before"); throw new RangeError("no") }')
    const { status, body } = await admin.post(`${path}/execute`, {})
    expect([status, body.error, body.logs.length]).toEqual([
      200,
      { code: 'LAMBDA_FAILED', message: 'RangeError: no', stack: expect.stringContaining('lambda.js:1') },
      1,
    ])
    expect(body).not.toHaveProperty('result')
  })

  test('a lambda has URL, timers, text encoding, base64, random values and atoll.crypto', async () => {
    const all = await runOnce(
      admin,
      `async (_, atoll) => {
        const url = new URL('../c?d=1#e', 'https://a.test:81/b/x')
        url.searchParams.append('f', 'g h')
        url.hash = ''
        const seen = []
        const ticked = new Promise((resolve) => {
          const timer = setInterval(() => { if (seen.push('tick') === 3) resolve(clearInterval(timer)) }, 1)
        })
        clearTimeout(setTimeout(() => seen.push('never'), 1))
        queueMicrotask(() => seen.push('soon'))
        await ticked
        const { hash, hmac, encode, decode, timingSafeEqual } = atoll.crypto
        return {
          url: url.href, host: url.host, params: [...new URLSearchParams('a=1&a=%C3%A9+b&c')], seen,
          bytes: [...new TextEncoder().encode('é')], text: new TextDecoder().decode(new Uint8Array([0xc3, 0xa9])),
          base64: [btoa('hi'), atob('aGk=')], uuid: crypto.randomUUID(), random: crypto.getRandomValues(new Uint8Array(4)).length,
          hash: encode(hash('sha256', ''), 'hex').slice(0, 8), hmac: encode(hmac('sha256', 'key', decode('AAE', 'base64url')), 'base64'),
          same: [timingSafeEqual('a', 'a'), timingSafeEqual('a', 'b'), timingSafeEqual(new Uint8Array([97]), 'a')],
        }
      }`,
    )
    expect(all).toEqual({
      ...{
        url: 'https://a.test:81/c?d=1&f=g+h',
        host: 'a.test:81',
        params: [
          ['a', '1'],
          ['a', 'é b'],
          ['c', ''],
        ],
      },
      ...{ seen: ['soon', 'tick', 'tick'], bytes: [0xc3, 0xa9], text: 'é', base64: ['aGk=', 'hi'] },
      ...{ uuid: expect.stringMatching(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/), random: 4 },
      ...{ hash: 'e3b0c442', hmac: new Bun.CryptoHasher('sha256', 'key').update(Buffer.from([0, 1])).digest('base64') },
      same: [true, false, true],
    })
  })

  test('a lambda can verify the signature of a webhook with its environment and atoll.crypto', async () => {
    const key = Buffer.from('a secret of some length')
    const rawBody = '{"a": 1}'
    const signature = new Bun.CryptoHasher('sha256', key).update(`msg.1.${rawBody}`).digest('base64')
    const check = `({ headers, rawBody }, { crypto, env }) => {
      const key = crypto.decode(env.SECRET.replace('whsec_', ''), 'base64')
      const made = crypto.encode(crypto.hmac('sha256', key, 'msg.1.' + rawBody), 'base64')
      return crypto.timingSafeEqual('v1,' + made, headers['webhook-signature'])
    }`
    const path = await createLambda(admin, check, { env: { SECRET: `whsec_${key.toString('base64')}` } })
    const execute = async (value: string, raw = rawBody) =>
      toResult(await admin.post(`${path}/execute`, { rawBody: raw, headers: { 'webhook-signature': value } }))
    expect(await execute(`v1,${signature}`)).toBe(true)
    expect(await execute(`v1,${signature}`, '{"a":1}')).toBe(false)
    expect(await execute('v1,AAAA')).toBe(false)
  })

  test('globals and prototypes that a lambda changes are fresh in its next run', async () => {
    const path = await createLambda(
      admin,
      '() => { globalThis.n = (globalThis.n ?? 0) + 1; Array.prototype.x = 1; return n }',
    )
    for (let n = 0; n < 3; n++) expect(toResult(await admin.post(`${path}/execute`, {}))).toBe(1)
    expect(await runOnce(admin, '() => [typeof n, [].x ?? null]')).toEqual(['undefined', null])
  })
})

describe('the HTTP answer of a lambda', () => {
  test('an answer is any JSON value with status 200, or an object with its own status, headers and body', async () => {
    const json = { 'content-type': 'application/json;charset=utf-8' }
    expect(await runAnonymously('() => ({ a: [1] })')).toEqual({ status: 200, headers: json, body: '{"a":[1]}' })
    expect(await runAnonymously('() => undefined')).toEqual({ status: 200, headers: json, body: 'null' })
    expect(await runAnonymously('() => ({ status: "open" })')).toMatchObject({ status: 200, body: '{"status":"open"}' })
    expect(await runAnonymously('() => ({ status: 5, name: "a" })')).toMatchObject({ status: 200 })
    expect(await runAnonymously('() => ({ status: 201, body: { a: 1 } })')).toEqual({
      status: 201,
      headers: json,
      body: '{"a":1}',
    })
    const page = await runAnonymously(
      '() => ({ status: 404, headers: { "Content-Type": "text/html", "x-n": 5, "set-cookie": "theme=dark" }, body: "<b>" })',
    )
    expect(page).toEqual({
      ...{ status: 404, body: '<b>' },
      headers: { 'content-type': 'text/html', 'x-n': '5', 'set-cookie': 'theme=dark' },
    })
    expect(await toResponse(page).text()).toBe('<b>')
    const empty = toResponse(await runAnonymously('() => ({ status: 204, body: "x" })'))
    expect([empty.status, await empty.text()]).toEqual([204, ''])
    expect(await runAnonymously('() => ({ status: 302, headers: { location: "https://a.test/" } })')).toMatchObject({
      body: null,
    })
  })

  test.each([
    ['{ status: 99 }', /must be from 200 to 599/],
    ['{ status: 200.5 }', /status/],
    ['{ status: 200, headers: [] }', /must be an object/],
    ['{ status: 200, headers: { "a b": "1" } }', /name of a header/],
    ['{ status: 200, headers: { a: "1\\r\\nset-cookie: atoll_x=1" } }', /single line/],
    ['{ status: 200, headers: { a: {} } }', /single line/],
    ['{ status: 200, headers: { "Transfer-Encoding": "chunked" } }', /cannot set the header "transfer-encoding"/],
    ['{ status: 200, headers: { "set-cookie": "atoll_acme=1" } }', /cookie/],
    ['{ status: 200, headers: { "set-cookie": "=atoll_acme=1" } }', /cookie/],
    ['{ status: 200, headers: { "set-cookie": " Atoll_acme=1" } }', /cookie/],
    ['{ status: 200, headers: { "set-cookie": "__Host-atoll_acme=1" } }', /cookie/],
    ['{ status: 200, headers: { "set-cookie": "__hOST-Atoll_acme=1" } }', /cookie/],
    ['{ status: 200, headers: { "set-cookie": "__Host-atoll_acme=1; Secure; Path=/" } }', /cookie/],
    ['{ status: 200, headers: { "set-cookie": "a=1; Domain=example.com" } }', /cookie/],
    ['{ status: 200, headers: { "x-accel-redirect": "/files" } }', /x-accel-redirect/],
    ['{ status: 200, headers: { nel: "{}" } }', /cannot set the header "nel"/],
    ['{ status: 200, headers: { "Report-To": "{}" } }', /cannot set the header "report-to"/],
    ['{ status: 200, headers: { a: "x".repeat(9000) } }', /at most 8192/],
    [`{ status: 200, headers: JSON.parse('{"__proto__":"1","a":"' + "x".repeat(9000) + '"}') }`, /at most 8192/],
  ])('rejects an invalid status, header or cookie of an answer with LAMBDA_FAILED: %s', async (value, message) => {
    expect(await runOnce(admin, `() => (${value})`)).toEqual(['LAMBDA_FAILED', expect.stringMatching(message)])
  })

  test('rejects an answer of more than 1 MiB with LAMBDA_FAILED', async () => {
    expect(await runOnce(admin, '() => "x".repeat(1048574).length')).toBe(1_048_574)
    expect((await runAnonymously('() => "x".repeat(1048574)')).body?.length).toBe(1 << 20)
    expect(await runOnce(admin, '() => "x".repeat(1048575)')).toEqual([
      'LAMBDA_FAILED',
      expect.stringMatching(/too large/),
    ])
  })
})

describe('the API calls of a lambda', () => {
  const script = `async ({ body }, { entities }) => {
    const notes = entities('notes')
    const { identifier } = await notes.create({ text: 'one', n: 1 })
    await notes.create({ text: 'two', n: 2 })
    const found = await notes.find({ n: { $gte: 1 }, $sort: '-n', $limit: 2 })
    const changed = await notes.update(identifier, { text: 'uno' })
    const read = await notes.get(identifier)
    const { success } = await notes.remove(identifier)
    const gone = await notes.get(identifier).catch(({ status, code, name }) => [status, code, name])
    return { found: found.map(({ text }) => text), changed: changed.text, read: read.text, success, gone, owner: read.user }
  }`

  test('a lambda reads and writes entities with the permissions and scopes of its caller', async () => {
    const path = await createLambda(admin, script)
    const { body } = await runFor(asUser, path)
    const expected = {
      found: ['two', 'one'],
      changed: 'uno',
      read: 'uno',
      success: true,
      gone: [404, 'ENTITY_NOT_FOUND', 'AtollError'],
    }
    expect(JSON.parse(`${body}`)).toEqual({ ...expected, owner: testTenant.users.user })
    expect((await testTenant.as('user').get('/blueprints/notes/entities')).body).toMatchObject([{ text: 'two' }])
    expect((await testTenant.as('other').get('/blueprints/notes/entities')).body).toEqual([])

    const failing = async (actor: PublicCtx['actor']) => readRefusal(runFor(actor, path))
    expect(await failing({ ...asUser, roles: ['stranger'] })).toEqual([500, 'LAMBDA_FAILED'])
    expect(await failing(undefined)).toEqual([500, 'LAMBDA_FAILED'])
    expect(await failing({ ...asUser, scopes: ['lambdas:write', 'entities:read'] })).toMatchObject([
      500,
      'LAMBDA_FAILED',
    ])
    const reading = await createLambda(admin, '(_, { entities }) => entities("notes").find()')
    expect((await runFor({ ...asUser, scopes: ['entities:read'] }, reading)).status).toBe(200)
  })

  test('a rejected call throws the status, code and details of the API inside the lambda', async () => {
    const caught = (call: string) =>
      runOnce(admin, `(_, { entities }) => ${call}.catch(({ status, code, details }) => [status, code, !!details])`)
    expect(await caught('entities("notes").create({ n: "x" })')).toEqual([400, 'INVALID_INPUT', true])
    expect(await caught('entities("notes").create({ text: "a\\0" })')).toEqual([400, 'INVALID_INPUT', true])
    expect(await caught('entities("none").find()')).toEqual([404, 'BLUEPRINT_NOT_FOUND', false])
    expect(await caught('entities("notes").find({ nothing: 1 })')).toEqual([400, 'INVALID_INPUT', true])
    expect(await caught('entities("notes").find("x")')).toEqual([400, 'INVALID_INPUT', true])
    expect(await caught('entities({}).get([])')).toEqual([400, 'INVALID_INPUT', true])
    expect(await runOnce(admin, '(_, { entities }) => entities("none").find()')).toEqual([
      'LAMBDA_FAILED',
      'AtollError: There is no such blueprint.',
    ])
  })

  test('a lambda with a serviceRole has the permissions of that role instead of those of its caller', async () => {
    const path = await createLambda(admin, script, { serviceRole: 'keeper' })
    for (const actor of [undefined, { ...asUser, roles: ['stranger'] }]) {
      const { body } = await runFor(actor, path)
      expect(JSON.parse(`${body}`)).toMatchObject({
        changed: 'uno',
        owner: actor?.user ?? path.slice('/lambdas/'.length),
      })
    }
    // The permissions of the caller are not added.
    const powerless = await createLambda(admin, '(_, { entities }) => entities("notes").find()', {
      serviceRole: 'nothing',
    })
    expect(toResult(await admin.post(`${powerless}/execute`, {}))).toMatchObject(['LAMBDA_FAILED', expect.any(String)])
  })

  test('a lambda emits events in the name of callers who may emit them, and never with a reserved source', async () => {
    const emit = `(_, { events }) => events.emit({ source: 'shop', kind: 'order', eventName: 'paid', metadata: { n: 1 } })`
    expect(await runOnce(admin, emit)).toMatchObject({
      source: 'shop',
      user: testTenant.users.admin,
      metadata: { n: 1 },
    })
    const found = await admin.get('/events?source=shop')
    expect(found.body).toMatchObject([{ kind: 'order', eventName: 'paid' }])
    const path = await createLambda(admin, emit)
    for (const actor of [undefined, asUser])
      expect(await readRefusal(runFor(actor, path))).toEqual([500, 'LAMBDA_FAILED'])
    const forged = `async (_, { events }) => {
      try { await events.emit({ source: 'payments', eventName: 'subscription-activated' }) } catch ({ code }) { return code }
    }`
    expect(await runOnce(admin, forged)).toBe('FORBIDDEN')
    expect(await runOnce(admin, '(_, { events }) => events.emit({ kind: 5 })')).toEqual([
      'LAMBDA_FAILED',
      expect.any(String),
    ])
  })

  test('a lambda that makes more than 1,000 calls gets an error for those beyond', async () => {
    const counting = `async (_, { entities }) => {
      const calls = Array.from({ length: 1_100 }, () => entities('none').find().catch(({ code, message }) => code ?? message))
      return [...new Set(await Promise.all(calls))]
    }`
    expect(await runOnce(admin, counting)).toEqual(['BLUEPRINT_NOT_FOUND', expect.stringMatching(/at most 1000 calls/)])
  })

  test('a run makes eight calls at once, and starts no waiting call after its end', async () => {
    const [release, started] = [Promise.withResolvers<void>(), [] as number[]]
    holdCall = async (n) => {
      started.push(n)
      await release.promise
    }
    const { call, end } = serveCalls({ ctx: { ...testTenant.tenant, actor: undefined }, deadline: 0, fetchCount: 0 })
    const calls = Array.from({ length: 12 }, (_, n) => call('test.hold', JSON.stringify([n])))
    expect(started).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    end()
    release.resolve()
    expect((await Promise.all(calls)).filter(({ ok }) => ok)).toHaveLength(8)
    expect(started).toHaveLength(8)
    expect(await call('test.none', '[]')).toEqual({ ok: false, answer: 'null' })
  })
})

describe('fetch in a lambda', () => {
  beforeAll(denyPrivateNetwork)
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === '/large') return new Response('x'.repeat((1 << 20) + 1))
      if (pathname === '/bytes') return new Response(new Uint8Array([0, 255]))
      if (pathname === '/slow') await Bun.sleep(5_000)
      const { method, headers } = request
      return Response.json(
        { method, agent: headers.get('user-agent'), x: headers.get('x-a'), text: await request.text() },
        { status: 201 },
      )
    },
  })
  afterAll(() => server.stop(true))
  const fetchInLambda = (address: string, init = '{}', handler = 'async (r) => [r.status, r.ok, await r.json()]') =>
    runOnce(
      admin,
      `async (_, { fetch }) => fetch(${JSON.stringify(address)}, ${init}).then(${handler}).catch(({ status, code, message }) => [status ?? message, code])`,
    )

  test('rejects private addresses with 502 OUTSIDE_UNREACHABLE and invalid URLs with 400 INVALID_INPUT', async () => {
    for (const address of [server.url.href, 'https://127.0.0.1/', 'http://169.254.169.254/latest/', 'https://[::1]/'])
      expect(await fetchInLambda(address)).toEqual([502, 'OUTSIDE_UNREACHABLE'])
    for (const address of ['file:///etc/passwd', 'ftp://a.test/', 'data:,a', 'none', 'https://a:b@a.test/', '/api/me'])
      expect(await fetchInLambda(address)).toEqual([400, 'INVALID_INPUT'])
  })

  test.each([
    ['a number in place of a header', '{ headers: [1] }'],
    ['a header without a value', '{ headers: [["a"]] }'],
    ['a text in place of a header', '{ headers: ["ab"] }'],
    ['a name that is no text', '{ headers: [[{ toString: 1, valueOf: 1 }, "b"]] }'],
    ['a value that is no text', '{ headers: { a: { toString: 1, valueOf: 1 } } }'],
    ['more than a hundred headers', '{ headers: Array.from({ length: 101 }, (_, n) => ["x-" + n, "a"]) }'],
  ])('rejects %s with 400 INVALID_INPUT and writes nothing to the error log of the server', async (_, init) => {
    const logged = spyOn(log, 'error')
    try {
      expect(await fetchInLambda('https://a.test/', init)).toEqual([400, 'INVALID_INPUT'])
      expect(logged).not.toHaveBeenCalled()
    } finally {
      logged.mockRestore()
    }
  })

  test('fetch returns status, headers and body, limits both bodies to 1 MiB and allows 50 requests per run', async () => {
    config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
    try {
      const init = '{ method: "post", headers: { "X-A": "b" }, body: "hello" }'
      expect(await fetchInLambda(server.url.href, init)).toEqual([
        201,
        true,
        { method: 'POST', agent: 'atoll', x: 'b', text: 'hello' },
      ])
      expect(
        await fetchInLambda(
          server.url.href,
          '{}',
          'async ({ headers, text }) => [headers.get("Content-Type"), (await text()).length > 9]',
        ),
      ).toEqual([expect.stringMatching(/^application\/json/), true])
      expect(await fetchInLambda(`${server.url}bytes`, '{}', 'async (r) => [...await r.bytes()]')).toEqual([0, 255])
      expect(await fetchInLambda(`${server.url}large`)).toEqual([502, 'OUTSIDE_UNREACHABLE'])
      for (const wrong of [
        '{ method: "TRACE" }',
        '{ headers: { Host: "a" } }',
        '{ headers: { "a b": "c" } }',
        '{ method: "PUT", body: "x".repeat(1048577) }',
      ])
        expect(await fetchInLambda(server.url.href, wrong)).toEqual([400, 'INVALID_INPUT'])
      const many = `async () => Promise.allSettled(Array.from({ length: 60 }, () => fetch("${server.url}"))).then((all) => all.filter(({ reason }) => reason?.code === 'TOO_MANY_FETCHES').length)`
      expect(await runOnce(admin, many)).toBe(10)
    } finally {
      config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
    }
  })
})

describe('the time limit of a lambda', () => {
  const silent = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Promise<Response>(() => {}) })
  afterAll(() => silent.stop(true))
  beforeAll(() => {
    config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
  })
  afterAll(() => {
    config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
  })

  test.each([
    ['a server that never answers', `(_, { fetch }) => fetch('${silent.url}')`],
    [
      'a silent server inside try and catch',
      `async (_, { fetch }) => { try { await fetch('${silent.url}') } catch { return 1 } }`,
    ],
    [
      'several silent servers',
      `(_, { fetch }) => Promise.any([fetch('${silent.url}'), fetch('${silent.url}')]).catch(() => 1)`,
    ],
    ['a timer', '() => new Promise((resolve) => setTimeout(resolve, 60_000))'],
    ['an interval', '() => new Promise(() => setInterval(() => {}, 1))'],
    ['an endless loop', '() => { for (;;); }'],
  ])('a lambda that waits for %s answers 504 LAMBDA_TIMEOUT', async (_, body) => {
    const path = await createLambda(admin, body, { timeoutMs: 100 })
    const all = await Promise.all(times(16).map(() => readRefusal(runFor(asUser, path))))
    expect(all).toEqual(times(16).map(() => [504, 'LAMBDA_TIMEOUT']))
  })

  test('a lambda whose call is answered after its time limit answers 504 LAMBDA_TIMEOUT', async () => {
    // The engine is busy beyond its time in one step, while the answer to its call waits.
    const body = `async (_, { entities }) => {
      const pending = entities('notes').find().catch(() => 1)
      const began = Date.now()
      while (Date.now() - began < 300);
      return pending
    }`
    const path = await createLambda(admin, body, { timeoutMs: 100 })
    expect(await readRefusal(runFor(asUser, path))).toEqual([504, 'LAMBDA_TIMEOUT'])
  })
})

describe('the error of a call without permission', () => {
  test('the log of the lambda names the rejected call, its line and serviceRole as the remedy', async () => {
    const code = `async (_, atoll) => {
      await atoll.entities('notes').find()
    }`
    const path = await createLambda(admin, code)
    expect(await readRefusal(runFor(undefined, path))).toEqual([500, 'LAMBDA_FAILED'])
    const [run] = await waitUntil(
      async () => (await admin.get(`${path}/logs`)).body,
      (all) => all.length > 0,
    )
    expect(run.error.message).toBe(
      "AtollError: entities('notes').find was refused, because the caller is anonymous. Give the lambda a serviceRole that may do this, or call it as a user who may.",
    )
    expect(run.error.stack).toMatch(/lambda\.js:2/)
    const privileged = { ...asUser, privileged: true }
    expect(
      await readReason(
        runFor(privileged, await createLambda(admin, `(_, { events }) => events.emit({ source: 'x' })`)),
      ),
    ).toMatch(/events\.emit was refused to the caller: .* serviceRole/)
    const withServiceRole = await createLambda(admin, code, { serviceRole: 'nobody' })
    expect(await readReason(runFor(privileged, withServiceRole))).toMatch(/to the lambda's serviceRole "nobody": /)
  })
})

describe('the request that a lambda receives', () => {
  test('a lambda learns the username of its caller, also after it has changed', async () => {
    const { tenant, origin } = testTenant
    const { _id } = await registerUser(tenant, { username: 'grace', email: 'grace@x.test' }, ['admin'])
    const { token } = await issueApiToken(tenant, _id, { nickname: 'test' })
    const path = await createLambda(admin, '(request) => request.user.username')
    const run = async () => (await apiClient(origin, { 'x-api-key': token }).post(`${path}/execute`, {})).body.result
    expect(await run()).toBe('grace')
    expect((await admin.put(`/users/${_id}`, { username: 'hopper' })).status).toBe(200)
    expect(await run()).toBe('hopper')
  })

  test('a lambda receives the request as it was sent, without the credentials of a signed-in sender', async () => {
    const headers = { cookie: 'a=b', 'x-api-key': 'atl_x', authorization: 'Basic x', 'x-signature': 'y' }
    const request = new Request('http://a.test/api/webhooks/1?a=1&b=2&b=3', { method: 'POST', headers, body: '{}' })
    const path = await createLambda(admin, '(request) => request')
    const seen = async (actor: PublicCtx['actor'], raw: string) =>
      JSON.parse(`${(await runFor(actor, path, {}, httpToLambdaRequest({ actor }, request, raw))).body}`)
    expect(await seen(asUser, '{"c": 1}')).toEqual({
      ...{
        method: 'POST',
        path: '/api/webhooks/1',
        query: { a: '1', b: ['2', '3'] },
        body: { c: 1 },
        rawBody: '{"c": 1}',
      },
      ...{ headers: { 'x-signature': 'y' } },
      ...{ user: { _id: testTenant.users.user, roles: ['user'] }, workspace: null },
    })
    // A header that did not sign anybody in may be meant for the lambda.
    expect(await seen(undefined, 'a=b')).toMatchObject({
      headers: { authorization: 'Basic x' },
      body: 'a=b',
      user: null,
    })
    expect(await seen(undefined, '')).toMatchObject({ body: null, rawBody: '' })
  })
})

describe('failing lambdas', () => {
  const failing = async (body: string, more: object = {}) =>
    readRefusal(runFor(asUser, await createLambda(admin, body, more)))

  test('callers get 500 LAMBDA_FAILED or 504 LAMBDA_TIMEOUT, and only admins get the message of the error', async () => {
    const path = await createLambda(admin, '() => { throw new Error("the password is x") }')
    expect(await readRefusal(runFor(asUser, path))).toEqual([500, 'LAMBDA_FAILED'])
    expect(await readReason(runFor(asUser, path))).not.toContain('password')
    expect(await readReason(runFor({ ...asUser, privileged: true }, path))).toBe('Error: the password is x')
    expect(await failing('() => { for (;;); }', { timeoutMs: 50 })).toEqual([504, 'LAMBDA_TIMEOUT'])
    const bomb = '() => { const all = []; for (;;) all.push(new Array(1e5).fill(1)) }'
    expect(await failing(bomb, { memoryMb: 4, timeoutMs: 20_000 })).toEqual([500, 'LAMBDA_OUT_OF_MEMORY'])
    expect(await readRefusal(runFor(asUser, '/lambdas/none'))).toEqual([404, 'LAMBDA_NOT_FOUND'])
  })

  test('failed webhook runs emit one lambda-failed event a minute without the message, and other runs emit none', async () => {
    const path = await createLambda(admin, '() => { throw new Error("alone") }', { name: 'nightly' })
    const events = async () =>
      (await admin.get('/events?source=plugins&eventName=lambda-failed')).body.filter(
        ({ metadata }: { metadata: { lambda: string } }) => metadata.lambda === path.slice(9),
      )
    for (const trigger of ['execute', 'schedule', 'webhook', 'webhook'])
      expect(await readRefusal(runFor(undefined, path, { trigger, event: {} }))).toEqual([500, 'LAMBDA_FAILED'])
    const log = await waitUntil(
      async () => (await admin.get(`${path}/logs`)).body,
      (runs) => runs.length === 4,
    )
    expect(log).toHaveLength(4)
    const found = await events()
    expect(JSON.stringify(found)).not.toContain('alone')
    expect(found).toMatchObject([
      {
        ...{ kind: 'lambda', user: null },
        metadata: { lambda: path.slice(9), name: 'nightly', version: 1, trigger: 'webhook', code: 'LAMBDA_FAILED' },
      },
    ])
  })
})

describe('the log of a lambda', () => {
  test('GET /lambdas/:id/logs lists the runs with trigger, status, error, user and logs, and filters them', async () => {
    const path = await createLambda(
      admin,
      '({ body }) => { console.warn("seen", body); if (body > 1) throw new Error("no"); return { status: 202 } }',
    )
    await runFor(asUser, path, { trigger: 'webhook' }, inputToLambdaRequest({ body: 1 }))
    await readRefusal(runFor(undefined, path, { trigger: 'event' }, inputToLambdaRequest({ body: 2 })))
    const log = async (query = '') => (await admin.get(`${path}/logs${query}`)).body
    const all = await waitUntil(log, (found) => found.length === 2)
    const common = { _id: expect.any(String), version: 1, started: expect.any(String), duration: expect.any(Number) }
    const line = (n: number) => [{ at: expect.any(Number), level: 'warn', text: `seen ${n}` }]
    const error = { code: 'LAMBDA_FAILED', message: 'Error: no', stack: expect.any(String) }
    expect(all.sort((a: { status: number }, b: { status: number }) => a.status - b.status)).toEqual([
      { ...common, trigger: 'webhook', status: 202, error: null, user: testTenant.users.user, logs: line(1) },
      { ...common, trigger: 'event', status: 500, error, user: null, logs: line(2) },
    ])
    expect(await log('?status=500')).toMatchObject([{ trigger: 'event' }])
    expect(await log('?trigger=webhook')).toMatchObject([{ status: 202 }])
    expect(await log('?status=x')).toMatchObject({ code: 'INVALID_INPUT' })
    expect((await admin.get(`${path}/logs?limit=1`)).headers.get('link')).toContain('%24after=')
  })

  test('GET /lambdas/runs counts the runs and failures of each lambda that ever ran', async () => {
    const other = await createTestTenant()
    const keeper = other.as('admin')
    const [good, bad] = [await createLambda(keeper, '() => 1'), await createLambda(keeper, '() => { throw 1 }')]
    await createLambda(keeper, '() => 2')
    for (const path of [good, good, bad]) await keeper.post(`${path}/execute`)
    const summary = async () => (await keeper.get('/lambdas/runs')).body
    await waitUntil(
      async () => (await summary()).reduce((sum: number, { runs }: { runs: number }) => sum + runs, 0) === 3,
    )
    const byLambda = Object.fromEntries((await summary()).map((one: { lambda: string }) => [one.lambda, one]))
    const toId = (path: string) => path.slice('/lambdas/'.length)
    expect(Object.keys(byLambda)).toHaveLength(2)
    expect(byLambda[toId(good)]).toMatchObject({ runs: 2, failures: 0, lastRun: TIME, lastFailure: null })
    const { lastRun } = byLambda[toId(bad)]
    expect(byLambda[toId(bad)]).toMatchObject({ runs: 1, failures: 1, lastRun: TIME, lastFailure: lastRun })
    expect((await testTenant.as('user').get('/lambdas/runs')).status).toBe(403)
    const inTurn = await expectToTakeTurns(other.id, () => keeper.get('/lambdas/runs'))
    expect(inTurn.body).toEqual(await summary())
  })

  test('housekeeping keeps the last 200 runs of a lambda and removes those older than 30 days', async () => {
    const path = await createLambda(admin, '() => 1')
    const lambda = path.slice('/lambdas/'.length)
    const row = { lambda, version: 1, trigger: 'event', status: 200, error: null, duration: 1, user: null, logs: [] }
    await testTenant.tenant.write(async (tx) => {
      for (let n = 0; n < 250; n++)
        await tx
          .insert(runs)
          .values({ ...row, _id: Bun.randomUUIDv7(), started: new Date(Date.now() - n * 1_000).toISOString() })
    })
    const count = async () => Number((await admin.get(`${path}/logs?limit=1&count=1`)).headers.get('x-total-count'))
    expect(await count()).toBe(250)
    await withLease(testTenant.tenant, 'housekeeping', removeOld)
    expect(await count()).toBe(200)
    moveClock(Date.now() + 31 * DAY_MS)
    try {
      await withLease(testTenant.tenant, 'housekeeping', removeOld)
    } finally {
      moveClock()
    }
    expect(await count()).toBe(0)
  })
})

test('a lambda run with an API token of an admin has only the scopes of that token', async () => {
  const helper = await registerUser(testTenant.tenant, { username: 'helper' }, ['admin'])
  const { token } = await issueApiToken(testTenant.tenant, helper._id, { nickname: 'x', scopes: ['lambdas:write'] })
  const limited = apiClient(testTenant.origin, { 'x-api-key': token })
  expect(await runOnce(limited, '(_, { entities }) => entities("notes").find()')).toEqual([
    'LAMBDA_FAILED',
    expect.stringContaining('This API token does not have the scope entities:read.'),
  ])
})

test('a run that is written while the seconds of today are read counts among them', async () => {
  const { tenant, as } = await createTestTenant()
  const lambda = (await createLambda(as('admin'), '() => 1')).split('/').at(-1)!
  const row = { lambda, version: 1, trigger: 'execute', status: 200, error: null, user: null, logs: [] }
  const recorded = recordRun(tenant, { ...row, started: new Date().toISOString(), duration: 1_000 }, 'slow')
  const read = spyOn(dailyUse, 'readDailyUse').mockImplementationOnce(async () => {
    await recorded
    return 0
  })
  expect(await countSecondsToday(tenant)).toBe(1)
  read.mockRestore()
  expect(await countSecondsToday(tenant)).toBe(1)
})
