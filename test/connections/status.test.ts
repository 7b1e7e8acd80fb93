import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { connections } from '../../src/connections/tables'
import type { ProviderKind } from '../../src/payments/providers/provider'
import { TIME } from '../expectations'
import { startSmtpServer } from '../fakes/smtp-server'
import { allowPrivateNetwork, denyPrivateNetwork, times } from '../plugins/fixtures'
import { type ApiClient, createTestTenant, type TestResponse } from '../test-tenant'

setDefaultTimeout(30_000)

const PATH = '/integration-sources'
const BASIC = `Basic ${btoa('client:s3cret')}`

/** Stands for all providers; like the real ones, it checks the credentials. */
const requests: string[] = []
const upstream = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url)
    requests.push(`${request.method} ${pathname}`)
    const authorization = request.headers.get('authorization')
    const requireAuthorization = (expected: string) =>
      new Response(null, { status: authorization === expected ? 200 : 401 })
    if (pathname === '/v1/models' || pathname === '/v1/balance' || pathname === '/event-types')
      return requireAuthorization('Bearer s3cret')
    if (pathname === '/v1/oauth2/token')
      return (await request.text()) === 'grant_type=client_credentials'
        ? requireAuthorization(BASIC)
        : new Response(null, { status: 400 })
    if (pathname === '/keyed')
      return new Response(null, { status: request.headers.get('x-key') === 's3cret' ? 204 : 403 })
    if (pathname === '/no-head') return new Response(null, { status: request.method === 'HEAD' ? 405 : 200 })
    if (pathname === '/broken') return new Response(null, { status: 500 })
    return new Response(null, { status: 404 })
  },
})
const url = `http://127.0.0.1:${upstream.port}`

let testTenant: Awaited<ReturnType<typeof createTestTenant>>
let admin: ApiClient
let mailServer: Awaited<ReturnType<typeof startSmtpServer>>
beforeAll(async () => {
  allowPrivateNetwork()
  testTenant = await createTestTenant()
  admin = testTenant.as('admin')
  mailServer = await startSmtpServer({
    authOptional: false,
    onAuth: ({ username, password }, _, done) =>
      username === 'ada' && password === 's3cret' ? done(null, { user: 'ada' }) : done(new Error('No.')),
    allowInsecureAuth: true,
  })
})
afterAll(async () => {
  denyPrivateNetwork()
  await upstream.stop(true)
  await mailServer.close()
})

const checkDraft = async (kind: string, metadata: object, authentication: object = {}) => {
  const { status, body } = await admin.post(`${PATH}/status`, { kind, metadata, authentication })
  expect([status, body.checkedAt]).toEqual([200, TIME])
  expect(JSON.stringify(body)).not.toContain('s3cret')
  return [body.status, body.message]
}
const CONNECTED = ['connected', 'The server answered 200.']
const REFUSED = ['failed', 'The server rejected the credentials (401).']
const UNREACHABLE = ['failed', 'The connection was refused or closed.']

/** Settings with good and with bad credentials, and for payment providers the setting that is reported as missing. */
type Draft = { metadata: object; good: object; bad: object }
const paymentDrafts: Record<ProviderKind, Draft & { missing: string }> = {
  stripe: {
    missing: 'authentication.secretKey',
    metadata: { apiUrl: url },
    ...{ good: { secretKey: 's3cret' }, bad: { secretKey: 'x' } },
  },
  paypal: {
    missing: 'metadata.clientId',
    metadata: { apiUrl: url, clientId: 'client' },
    ...{ good: { clientSecret: 's3cret' }, bad: { clientSecret: 'x' } },
  },
  paddle: {
    missing: 'authentication.apiKey',
    metadata: { apiUrl: `${url}/` },
    ...{ good: { apiKey: 's3cret' }, bad: { apiKey: 'x' } },
  },
}
const drafts: Record<string, Draft> = {
  openai: { metadata: { apiUrl: `${url}/v1/` }, good: { token: 's3cret' }, bad: { token: 'x' } },
  ...paymentDrafts,
}

describe('the status of a connection', () => {
  test.each(Object.entries(drafts))(
    'the status of a connection of the kind %s is determined by a small call to the provider',
    async (kind, { metadata, good, bad }) => {
      expect(await checkDraft(kind, metadata, good)).toEqual(CONNECTED)
      expect(await checkDraft(kind, metadata, bad)).toEqual(REFUSED)
      expect(await checkDraft(kind, { ...metadata, apiUrl: 'http://127.0.0.1:1' }, good)).toEqual(UNREACHABLE)
    },
  )

  test('the status of a connection names a missing setting without which nothing can be requested', async () => {
    for (const [kind, { missing }] of Object.entries(paymentDrafts))
      expect(await checkDraft(kind, { apiUrl: url })).toEqual(['failed', `${missing} is missing.`])
    expect(await checkDraft('openai', { apiUrl: `${url}/v1` })).toEqual(REFUSED)
  })

  test('a connection of the kind http is checked with its headers by HEAD, and by GET where HEAD is not allowed', async () => {
    requests.length = 0
    expect(await checkDraft('http', { url: `${url}/keyed` }, { headers: { 'x-key': 's3cret' } })).toEqual([
      'connected',
      'The server answered 204.',
    ])
    expect(await checkDraft('http', { url: `${url}/no-head` })).toEqual(CONNECTED)
    expect(requests).toEqual(['HEAD /keyed', 'HEAD /no-head', 'GET /no-head'])
    expect(await checkDraft('http', { url: `${url}/keyed` })).toEqual([
      'failed',
      'The server rejected the credentials (403).',
    ])
    expect(await checkDraft('http', { url: `${url}/broken` })).toEqual(['failed', 'The server answered 500.'])
  })

  test('a connection of the kind email is checked up to the sign-in at the mail server, without sending a mail', async () => {
    const metadata = { host: '127.0.0.1', port: mailServer.port, user: 'ada' }
    expect(await checkDraft('email', metadata, { password: 's3cret' })).toEqual([
      'connected',
      'The mail server accepted the connection.',
    ])
    const [status, message] = await checkDraft('email', metadata, { password: 'x' })
    expect([status, message]).toEqual(['failed', expect.stringMatching(/^The mail server answered 535/)])
    expect((await checkDraft('email', { ...metadata, port: 1 }))[1]).toBe(
      'The mail server could not be reached (ESOCKET) at CONN.',
    )
    expect(mailServer.letters).toEqual([])
  })

  test('POST /integration-sources/:id/status checks the stored connection with its stored secrets', async () => {
    const stored = {
      name: 'Mine',
      kind: 'openai',
      metadata: { apiUrl: `${url}/v1` },
      authentication: { token: 's3cret' },
    }
    const { _id } = (await admin.post(PATH, stored)).body
    const status = async () => (await admin.post(`${PATH}/${_id}/status`)).body
    expect(await status()).toEqual({ status: 'connected', message: 'The server answered 200.', checkedAt: TIME })
    await admin.put(`${PATH}/${_id}`, { authentication: { token: 'other' } })
    expect((await status()).status).toBe('failed')
  })

  test('the check of a stored connection whose settings no longer fit its kind fails without a request', async () => {
    const stored = { name: 'Old', kind: 'http', metadata: { url } }
    const { _id } = (await admin.post(PATH, stored)).body
    await testTenant.tenant.write((tx) => tx.update(connections).set({ metadata: {} }).where(eq(connections._id, _id)))
    requests.length = 0
    expect((await admin.post(`${PATH}/${_id}/status`)).body).toMatchObject({
      ...{ status: 'failed', message: 'The settings of this connection are not valid for its kind.' },
    })
    expect(requests).toEqual([])
  })

  test('checks of private addresses fail without a request when the private network is not allowed', async () => {
    denyPrivateNetwork()
    const notAllowed = ['failed', 'Requests to this address are not allowed.']
    expect(await checkDraft('http', { url })).toEqual(notAllowed)
    expect(await checkDraft('http', { url: 'https://127.0.0.1' })).toEqual(notAllowed)
    expect(await checkDraft('email', { host: '127.0.0.1', port: mailServer.port })).toEqual(notAllowed)
    expect(await checkDraft('email', { host: 'localhost', port: mailServer.port })).toEqual(notAllowed)
    allowPrivateNetwork()
  })

  test('hundreds of checks that never end delay no check of another tenant, and those beyond the queue get 503 BUSY', async () => {
    const [busyAdmin, otherAdmin] = [(await createTestTenant()).as('admin'), (await createTestTenant()).as('admin')]
    const unanswered: (() => void)[] = []
    const silent = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 0,
      fetch: () => new Promise<Response>((resolve) => unanswered.push(() => resolve(new Response()))),
    })
    const draft = (at: string) => ({ kind: 'http', metadata: { url: at } })
    const hanging = times(300).map(() => busyAdmin.post(`${PATH}/status`, draft(silent.url.href)))
    // Eight are under way and 256 wait; the others get 503.
    const busy: TestResponse[] = []
    for (const one of hanging) one.then((answer) => answer.status === 503 && busy.push(answer))
    while (busy.length < 36 || unanswered.length < 8) await Bun.sleep(5)
    expect(unanswered).toHaveLength(8)
    expect([busy[0]!.body.code, busy[0]!.headers.get('retry-after')]).toEqual(['BUSY', '1'])
    const otherCheck = await otherAdmin.post(`${PATH}/status`, draft(`${url}/no-head`))
    expect(otherCheck.body.status).toBe('connected')
    // The same tenant reaches a server that does answer, too.
    expect((await busyAdmin.post(`${PATH}/status`, draft(`${url}/no-head`))).body.status).toBe('connected')
    expect([unanswered.length, busy.length]).toEqual([8, 36])
    let ended = 0
    for (const one of hanging) one.then(() => ended++)
    while (ended < 300) {
      for (const release of unanswered.splice(0)) release()
      await Bun.sleep(5)
    }
    await silent.stop(true)
  })

  test('rejects a draft that does not fit its kind with 400', async () => {
    for (const draft of [
      {},
      { kind: 'fax' },
      { kind: 'http', metadata: {} },
      { kind: 'openai', authentication: { x: 1 } },
    ])
      expect((await admin.post(`${PATH}/status`, draft)).status).toBe(400)
  })
})
