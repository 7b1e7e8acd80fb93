import { afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { handleRequest } from '../../src/gateway'
import { setServer } from '../../src/tenancy/client-connection'
import { advanceClock, resetClock, signInForCookie } from '../accounts/session-fixtures'
import { times } from '../plugins/fixtures'
import { type ApiClient, callApi, statusAndCode } from '../test-tenant'
import { waitUntil } from '../wait-until'
import { setConfiguration } from '../workspaces/workspace-fixtures'
import { createIntegrationsFixture, type IntegrationsFixture } from './fixtures'

setDefaultTimeout(30_000)

let h: IntegrationsFixture
let admin: ApiClient
let echoPath: string // a webhook that answers with its request
beforeAll(async () => {
  h = await createIntegrationsFixture()
  admin = h.admin
  echoPath = await h.webhook('(request) => request')
})
afterEach(resetClock)

const NOT_FOUND = [404, 'WEBHOOK_NOT_FOUND']
const send = (method: string, path: string, init: Parameters<typeof callApi>[2] = {}) =>
  callApi(method, `${h.origin}/api${path}`, { ...init, headers: { 'x-api-key': h.tokens.user, ...init.headers } })

describe('webhooks', () => {
  test('a webhook passes the request to its lambda and returns the answer of the lambda', async () => {
    const path = echoPath
    const posted = await send('POST', `${path}?a=1&b=2&b=3`, { body: { n: 1 }, headers: { 'x-signature': 'abc' } })
    expect(posted.status).toBe(200)
    expect(posted.headers.get('content-type')).toStartWith('application/json')
    expect(posted.body).toMatchObject({
      method: 'POST',
      path: `/api${path}`,
      query: { a: '1', b: ['2', '3'] },
      headers: { 'x-signature': 'abc', 'content-type': 'application/json' },
      body: { n: 1 },
      rawBody: '{"n":1}',
      user: { _id: h.users.user, roles: ['user'] },
      workspace: null,
    })
    expect(posted.body.headers).not.toHaveProperty('x-api-key')
    expect((await send('PUT', path, { raw: ' {"n" : 1}\n' })).body).toMatchObject({
      rawBody: ' {"n" : 1}\n',
      body: { n: 1 },
    })
    const text = await send('POST', path, {
      raw: 'a=1&b=2',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect(text.body).toMatchObject({ body: 'a=1&b=2', rawBody: 'a=1&b=2' })
    for (const method of ['GET', 'DELETE'])
      expect((await send(method, path)).body).toMatchObject({ method, body: null, rawBody: '' })
    expect((await send('GET', `/v1${path}`)).body).toMatchObject({ path: `/api${path}` })
  })

  test('rejects JSON that is nested more than 1,000 levels deep with 400 INVALID_INPUT, and passes it on as text', async () => {
    const nest = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    const post = async (depth: number, type: string) =>
      send('POST', echoPath, { raw: nest(depth), headers: { 'content-type': type } })
    expect((await post(1_000, 'application/json')).body.rawBody).toBe(nest(1_000))
    for (const depth of [1_001, 400_000])
      expect(statusAndCode(await post(depth, 'application/json'))).toEqual([400, 'INVALID_INPUT'])
    expect((await post(200_000, 'text/plain')).body).toMatchObject({ body: nest(200_000), rawBody: nest(200_000) })
  })

  test('rejects a body with a JSON content type that is not JSON with 400 MALFORMED_BODY', async () => {
    for (const type of ['application/json', 'application/json; charset=utf-8', 'application/problem+json'])
      for (const method of ['POST', 'PUT'])
        expect(
          statusAndCode(await send(method, echoPath, { raw: '{"a":', headers: { 'content-type': type } })),
        ).toEqual([...[400, 'MALFORMED_BODY']])
    expect(
      (await send('POST', echoPath, { raw: '{"a":', headers: { 'content-type': 'text/plain' } })).body,
    ).toMatchObject({ body: '{"a":' })
    expect((await send('POST', echoPath, { raw: '', headers: { 'content-type': 'application/json' } })).status).toBe(
      200,
    )
  })

  test('a webhook answers with the status, headers and body of its lambda, and sandboxes a page', async () => {
    const path = await h.webhook(
      `() => ({ status: 418, headers: { 'x-tea': 'pot', 'content-type': 'text/html' }, body: '<b>no</b>' })`,
    )
    const answer = await send('POST', path)
    expect([answer.status, answer.body, answer.headers.get('x-tea')]).toEqual([418, '<b>no</b>', 'pot'])
    // A page of a lambda must not act as the user who looks at it.
    expect(answer.headers.get('content-security-policy')).toStartWith('sandbox ')
    expect(answer.headers.get('content-security-policy')).not.toContain('allow-same-origin')
    expect((await send('GET', await h.webhook('() => {}'))).body).toBe(null)
  })

  test.each([
    ['""', /^sandbox [^,]*$/],
    ['" "', /^sandbox [^,]*$/],
    [`"default-src 'self'"`, /^sandbox [^,]*, default-src 'self'$/],
    ['"sandbox allow-same-origin allow-scripts"', /^sandbox (?![^,]*same-origin)[^,]*, sandbox allow-same-origin/],
  ])('a page is sandboxed without its origin in addition to its own policy %s', async (policy, expected) => {
    const path = await h.webhook(
      `() => ({ status: 200, headers: { 'content-type': 'text/html', 'Content-Security-Policy': ${policy} }, body: '' })`,
    )
    expect((await send('GET', path)).headers.get('content-security-policy')).toMatch(expected)
  })

  test.each([
    ['new Uint8Array([0, 1, 2, 128, 255])', [0, 1, 2, 128, 255]],
    ['new Uint8Array([9, 0, 200, 9]).subarray(1, 3)', [0, 200]],
    ['new Uint16Array([513]).buffer', [1, 2]],
    ['new Uint8Array()', []],
  ])('a webhook answers with the bytes of %s', async (bytes, expected) => {
    const path = await h.webhook(`() => ({ status: 200, headers: { 'content-type': 'image/png' }, body: ${bytes} })`)
    const headers = { host: new URL(h.origin).host, 'x-api-key': h.tokens.user }
    const answer = await handleRequest(new Request(`${h.origin}/api${path}`, { headers }))
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/png'])
    expect([...new Uint8Array(await answer.arrayBuffer())]).toEqual(expected)
  })

  test.each(['application/json', 'application/problem+json; charset=utf-8'])(
    'rejects a body of the type %s that is not JSON with 400 MALFORMED_BODY and runs nothing',
    async (type) => {
      const path = await h.webhook(`() => { throw new Error('run') }`)
      const headers = { 'content-type': type }
      for (const method of ['POST', 'PUT'])
        expect(statusAndCode(await send(method, path, { raw: '{"a":', headers }))).toEqual([400, 'MALFORMED_BODY'])
      expect((await send('POST', echoPath, { raw: '[1]', headers })).body.body).toEqual([1])
      expect((await send('POST', echoPath, { headers })).body.body).toBeNull()
      expect(
        (await send('POST', echoPath, { raw: '{"a":', headers: { 'content-type': 'text/plain' } })).body.body,
      ).toBe('{"a":')
    },
  )

  test('a webhook whose lambda fails emits lambda-failed at most once a minute for each lambda', async () => {
    const path = await h.webhook(`() => { throw new Error('the secret reason') }`, { guest: true })
    const otherPath = await h.webhook(`() => { throw new Error('the secret reason') }`, { guest: true })
    const failures = async () => (await admin.get('/events?source=plugins&eventName=lambda-failed&limit=100')).body
    const before = (await failures()).length
    const waitForRuns = async (count: number) => {
      for (const one of [path, otherPath]) {
        const integration = (await admin.get(`/integrations/${one.split('/').at(-1)}`)).body
        const logs = () => admin.get(`/lambdas/${integration.target.lambdaId}/logs`)
        await waitUntil(logs, ({ body }) => body.length === count)
      }
    }
    await Promise.all([
      ...times(5).map(() => h.anonymous.post(path)),
      ...times(5).map(() => h.anonymous.post(otherPath)),
    ])
    await waitForRuns(5)
    const first = (await failures()).slice(0, -before || undefined)
    expect(first).toHaveLength(2)
    expect(first).toMatchObject(
      Array(2).fill({ kind: 'lambda', metadata: { trigger: 'webhook', code: 'LAMBDA_FAILED' } }),
    )
    expect(new Set(first.map(({ metadata }: { metadata: { lambda: string } }) => metadata.lambda)).size).toBe(2)
    expect(JSON.stringify(first)).not.toContain('secret')
    advanceClock(61_000)
    for (const one of [path, otherPath]) await h.anonymous.post(one)
    await waitForRuns(6)
    expect((await failures()).length - before).toBe(4)
  })

  test('a webhook whose lambda fails answers 500 LAMBDA_FAILED, with the error only for admins', async () => {
    const path = await h.webhook(`() => { throw new Error('the secret reason') }`)
    const [user, privileged] = [await send('POST', path), await admin.post(path)]
    expect([statusAndCode(user), statusAndCode(privileged)]).toEqual([
      [500, 'LAMBDA_FAILED'],
      [500, 'LAMBDA_FAILED'],
    ])
    expect(JSON.stringify(user.body)).not.toContain('secret reason')
    expect(user.body.message).toBe('The lambda failed. Admins find details in its log (GET /api/lambdas/:id/logs).')
    expect(privileged.body.message).toContain('the secret reason')
  })

  test('a webhook that does not exist, is inactive or has another trigger answers 404 WEBHOOK_NOT_FOUND', async () => {
    const target = { kind: 'lambda', lambdaId: await h.lambda('() => 1') }
    const inactive = await h.integration({ kind: 'webhook' }, target, { active: false, guest: true })
    const scheduled = await h.integration({ kind: 'schedule', cron: '0 0 1 1 *' }, target, { guest: true })
    for (const id of ['none', '%00', inactive._id, scheduled._id])
      for (const client of [admin, h.as('user'), h.anonymous])
        for (const method of ['get', 'post', 'put', 'delete'] as const)
          expect(statusAndCode(await client[method](`/webhooks/${id}`))).toEqual(NOT_FOUND)
    await admin.put(`/integrations/${inactive._id}`, { active: true })
    expect((await h.anonymous.post(`/webhooks/${inactive._id}`)).body).toBe(1)
    await admin.delete(`/integrations/${inactive._id}`)
    expect(statusAndCode(await h.anonymous.post(`/webhooks/${inactive._id}`))).toEqual(NOT_FOUND)
  })

  test('a webhook answers anonymous callers with 401 unless it has guest: true', async () => {
    expect(statusAndCode(await h.anonymous.post(echoPath, { n: 1 }))).toEqual([401, 'UNAUTHENTICATED'])
    const open = await h.webhook('({ user }) => ({ user })', { guest: true, roles: ['nobody'] })
    expect((await h.anonymous.post(open)).body).toEqual({ user: null })
    expect((await h.as('user').post(open)).body.user._id).toBe(h.users.user)
    // Senders may have credentials that are no credentials of the API.
    const sender = h.anonymous.with({ authorization: 'Basic YWRhOnNlY3JldA==' })
    expect((await sender.post(open)).body).toEqual({ user: null })
    expect(statusAndCode(await sender.post(echoPath))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('a webhook with roles answers 403 to callers who have none of them in the tenant or the active workspace', async () => {
    const path = await h.webhook('() => 1', { roles: ['plugin'], workspaceRoles: ['clerk'] })
    expect((await h.as('editor').post(path)).status).toBe(200)
    expect((await admin.post(path)).status).toBe(200)
    expect(statusAndCode(await h.as('user').post(path))).toEqual([403, 'FORBIDDEN'])
    const made = await h.as('user').post('/workspaces', { name: 'Office' })
    await h.as('user').post(`/workspaces/${made.body._id}/activate`)
    expect(statusAndCode(await h.as('user').post(path))).toEqual([403, 'FORBIDDEN'])
    await admin.post(`/workspaces/${made.body._id}/members`, { userId: h.users.other, roles: ['clerk'] })
    await h.as('other').post(`/workspaces/${made.body._id}/activate`)
    expect((await h.as('other').post(path)).status).toBe(200)
    expect((await h.as('user').post(await h.webhook('() => 1', { roles: ['*'] }))).status).toBe(200)
  })

  test('the lambda of a webhook has the permissions of its caller or of a guest, or of its serviceRole', async () => {
    const all = ['create', 'read'].map((operation) => ({ operation, scope: 'tenant', roleBased: ['plugin'] }))
    const permissions = [...all, { operation: 'read', scope: 'tenant', guest: true }]
    await admin.post('/blueprints', {
      key: 'notes',
      name: 'Notes',
      fields: [{ key: 'text', type: 'string' }],
      permissions,
    })
    const path = await h.webhook(`(request, atoll) => atoll.entities('notes').create({ text: request.body })`, {
      guest: true,
    })
    expect((await h.as('editor').post(path, 'hello')).body).toMatchObject({ text: 'hello', user: h.users.editor })
    expect((await h.as('user').post(path, 'no')).status).toBe(500)
    expect((await h.anonymous.post(path, 'no')).status).toBe(500)
    const find = await h.webhook(`(_, atoll) => atoll.entities('notes').find()`, { guest: true })
    expect((await h.anonymous.get(find)).body.length).toBe(1)
    const lambdaId = await h.lambda(`(request, atoll) => atoll.entities('notes').create({ text: request.body })`, {
      serviceRole: 'plugin',
    })
    const { _id } = await h.integration({ kind: 'webhook' }, { kind: 'lambda', lambdaId }, { guest: true })
    expect((await h.anonymous.post(`/webhooks/${_id}`, 'by its own right')).body.text).toBe('by its own right')
  })

  test('a POST with a cookie from the page of another site answers 403 CROSS_SITE', async () => {
    const headers = await signInForCookie(h, 'user')
    const browser = h.anonymous.with(headers)
    expect((await browser.post(echoPath, {}, { origin: h.origin })).status).toBe(200)
    expect(statusAndCode(await browser.post(echoPath, {}, { origin: 'https://evil.test' }))).toEqual([
      403,
      'CROSS_SITE',
    ])
  })

  test('a GET or HEAD from a page of another origin is anonymous despite its cookie, unless it is a website of the tenant', async () => {
    const browser = h.anonymous.with(await signInForCookie(h, 'user'))
    const open = await h.webhook('({ user }) => ({ user: user?._id ?? null })', { guest: true })
    const crossSite = { 'sec-fetch-site': 'cross-site' }
    expect((await browser.get(open, crossSite)).body).toEqual({ user: null })
    expect(statusAndCode(await browser.get(echoPath, crossSite))).toEqual([401, 'UNAUTHENTICATED'])
    // Tenants at sibling subdomains are one site.
    const sibling = { 'sec-fetch-site': 'same-site', origin: 'https://sibling.test', referer: 'https://sibling.test/' }
    expect((await browser.get(open, sibling)).body).toEqual({ user: null })
    expect((await browser.get(open, { 'sec-fetch-site': 'same-site' })).body).toEqual({ user: null })
    await setConfiguration(h.tenant, 'app-configuration', { websiteUrls: ['https://www.acme.test'] })
    for (const page of [{ origin: 'https://www.acme.test' }, { referer: 'https://www.acme.test/a?b' }])
      for (const site of ['same-site', 'cross-site'])
        expect((await browser.get(open, { 'sec-fetch-site': site, ...page } as never)).body).toEqual({
          user: h.users.user,
        })
    for (const site of ['same-origin', 'none'])
      expect((await browser.get(open, { 'sec-fetch-site': site })).body, site).toEqual({ user: h.users.user })
    // Over plain HTTP, browsers say less.
    for (const page of [{ origin: 'http://evil.test' }, { referer: 'http://evil.test/a' }, { origin: 'null' }])
      expect((await browser.get(open, page as never)).body).toEqual({ user: null })
    for (const page of [{ origin: h.origin }, { referer: `${h.origin}/a` }, { origin: 'https://www.acme.test' }, {}])
      expect((await browser.get(open, page as never)).body).toEqual({ user: h.users.user })
    // Other credentials are not sent by a browser on its own.
    expect((await h.as('user').get(open, crossSite)).body).toEqual({ user: h.users.user })
    const { origin } = h
    const headers = { ...crossSite, ...(await signInForCookie(h, 'user')) }
    expect((await callApi('HEAD', `${origin}/api${echoPath}`, { headers })).status).toBe(401)
    expect((await callApi('HEAD', `${origin}/api${open}`, { headers })).status).toBe(200)
  })

  test('rejects a body beyond ATOLL_BODY_LIMIT with 413 BODY_TOO_LARGE', async () => {
    const raw = 'x'.repeat(config.ATOLL_BODY_LIMIT + 1)
    expect(statusAndCode(await send('POST', echoPath, { raw }))).toEqual([413, 'BODY_TOO_LARGE'])
    expect((await send('POST', echoPath, { raw: 'x'.repeat(100_000) })).body.rawBody.length).toBe(100_000)
  })

  test('HEAD and OPTIONS answer without running the lambda, and PATCH answers 405 METHOD_NOT_ALLOWED', async () => {
    const path = await h.webhook(`() => { throw new Error('run') }`, { guest: true })
    const head = await callApi('HEAD', `${h.origin}/api${path}`)
    expect([head.status, head.body]).toEqual([200, undefined])
    expect((await callApi('HEAD', `${h.origin}/api/webhooks/none`)).status).toBe(404)
    expect((await callApi('HEAD', `${h.origin}/api${echoPath}`)).status).toBe(401)
    const options = await callApi('OPTIONS', `${h.origin}/api${path}`)
    expect([options.status, options.headers.get('allow')?.split(', ').sort()]).toEqual([
      204,
      ['DELETE', 'GET', 'HEAD', 'POST', 'PUT'],
    ])
    expect(statusAndCode(await send('PATCH', path))).toEqual([405, 'METHOD_NOT_ALLOWED'])
  })

  test('rejects the 51st guest call from one address with 429 RATE_LIMITED, but no other address or user', async () => {
    const path = await h.webhook('() => 1', { guest: true })
    let address = '192.0.2.1'
    setServer({ requestIP: () => ({ address, family: 'IPv4', port: 1 }) as never })
    const calls = await Promise.all(Array.from({ length: 60 }, () => h.anonymous.post(path)))
    const refused = calls.filter(({ status }) => status === 429)
    expect([refused.length, refused[0]!.body.code, Number(refused[0]!.headers.get('retry-after')) > 0]).toEqual([
      10,
      'RATE_LIMITED',
      true,
    ])
    expect((await h.as('user').post(path)).status).toBe(200)
    address = '192.0.2.2'
    expect((await h.anonymous.post(path)).status).toBe(200)
    address = '192.0.2.1'
    advanceClock(5_001)
    expect((await h.anonymous.post(path)).status).toBe(200)
    setServer(undefined)
  })

  test('a repeated request with the same idempotency-key runs the lambda only once', async () => {
    const path = await h.webhook('() => Math.random()')
    const key = { 'idempotency-key': 'one' }
    const [first, second] = [await h.as('user').post(path, {}, key), await h.as('user').post(path, {}, key)]
    expect([second.status, second.body]).toEqual([200, first.body])
    expect((await h.as('user').post(path, {})).body).not.toBe(first.body)
  })
})
