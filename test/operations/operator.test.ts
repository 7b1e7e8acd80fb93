import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { config } from '../../src/config'
import { keepLogLine, startLogTail } from '../../src/core/log-tail'
import { describeTimeZones } from '../../src/core/time-zone'
import { withLease } from '../../src/jobs/with-lease'
import { Minute } from '../../src/operations/metrics/recent-requests'
import { recentRequests } from '../../src/operations/metrics/request-statistics'
import { endSupportSessions } from '../../src/operations/support'
import { advanceClock, resetClock } from '../accounts/session-fixtures'
import { ID, TIME } from '../expectations'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'

const TOKEN = 'the operator token of this test'.replaceAll(' ', '-')
const HOUR = 3_600_000

const operator = (method: string, path: string, body?: unknown, authorization = `Bearer ${TOKEN}`) =>
  callApi(method, `http://localhost/operator${path}`, { headers: { authorization }, body })

const newId = () => `t${crypto.randomUUID()}`

beforeAll(() => {
  config.ATOLL_OPERATOR_TOKEN = TOKEN
})
afterAll(() => {
  config.ATOLL_OPERATOR_TOKEN = ''
  resetClock()
})

describe('tenants of the operator', () => {
  test('a tenant is created with the name of its product, which everybody may read', async () => {
    const id = newId()
    const body = { id, name: 'Paper Boats', hosts: [`${id}.test`] }
    expect((await operator('POST', '/tenants', body)).status).toBe(201)
    const app = await callApi('GET', `http://${id}.test/api/configurations/app-configuration`)
    expect(app.body.metadata).toEqual({ name: 'Paper Boats' })
    expect(statusAndCode(await operator('POST', '/tenants', { id: newId(), name: '' }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a tenant is created with a link that makes its first administrator, listed, and deleted by its repeated id', async () => {
    const id = newId()
    const created = await operator('POST', '/tenants', { id, hosts: [`${id}.test`] })
    expect(created.status).toBe(201)
    expect(created.body).toEqual({
      ...{ id, status: 'active', created: TIME, hosts: [`${id}.test`], damage: null, lastRequest: null },
      ...{ backup: null, backupOverdue: false },
      ...(config.ATOLL_DATABASE_URL ? { home: expect.any(String), bytes: null } : { bytes: expect.any(Number) }),
      setUpLink: expect.stringMatching(new RegExp(`^http://localhost/admin/set-up\\?tenant=${id}#[\\w-]+$`)),
    })
    const [, token] = created.body.setUpLink.split('#')
    const input = { token, username: 'ada', password: 'correct horse' }
    expect((await callApi('POST', `http://${id}.test/api/setup`, { body: input })).status).toBe(201)
    expect((await operator('POST', `/tenants/${id}/setup-link`)).body).toEqual({ link: null })
    const tenant = (await operator('GET', `/tenants/${id}`)).body
    expect(tenant.lastRequest).toEqual(TIME)
    const all = await operator('GET', '/tenants?sort=-created&limit=1&count=true')
    expect(all.body).toHaveLength(1)
    expect(Number(all.headers.get('x-total-count'))).toBeGreaterThan(0)
    for (const [q, count] of [
      [id.slice(3).toUpperCase(), 1],
      [`${id.slice(3)}.test`, 1],
      [`${id.slice(3)}%`, 0],
    ] as const) {
      const found = await operator('GET', `/tenants?q=${encodeURIComponent(q)}&count=true`)
      expect([found.body.length, found.headers.get('x-total-count')], q).toEqual([count, `${count}`])
    }
    expect(statusAndCode(await operator('POST', '/tenants', { id }))).toEqual([409, 'TENANT_EXISTS'])
    expect(statusAndCode(await operator('DELETE', `/tenants/${id}`))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await operator('DELETE', `/tenants/${id}?confirm=other`))).toEqual([400, 'INVALID_INPUT'])
    expect((await operator('DELETE', `/tenants/${id}?confirm=${id}`)).body.success).toBe(true)
    expect(statusAndCode(await operator('GET', `/tenants/${id}`))).toEqual([404, 'TENANT_NOT_FOUND'])
    const { body: events } = await operator('GET', `/events?tenant=${id}`)
    expect(events.map(({ eventName }: { eventName: string }) => eventName)).toEqual([
      'tenant-deleted',
      'tenant-created',
    ])
    expect(events[1]).toEqual({
      ...{ _id: ID, eventName: 'tenant-created', tenant: id, created: TIME },
      metadata: { hosts: [`${id}.test`] },
    })
  })

  test('a tenant with an administrator needs no link, and one whose administrator is refused is not created', async () => {
    const [id, other] = [newId(), newId()]
    const admin = { username: 'ada', password: 'correct horse', email: 'ada@example.com' }
    expect((await operator('POST', '/tenants', { id, admin })).body.setUpLink).toBeNull()
    const refused = await operator('POST', '/tenants', { id: other, admin: { ...admin, password: 'short' } })
    expect(statusAndCode(refused)).toEqual([400, 'INVALID_INPUT'])
    expect((await operator('GET', `/tenants/${other}`)).status).toBe(404)
    expect(statusAndCode(await operator('POST', '/tenants', { id: 'No such id' }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a suspended tenant answers 403 until it is resumed', async () => {
    const { tenant, as } = await createTestTenant()
    const path = `/tenants/${tenant.tenant}`
    expect((await operator('POST', `${path}/suspend`)).body.status).toBe('suspended')
    expect(statusAndCode(await as('admin').get('/me'))).toEqual([403, 'TENANT_SUSPENDED'])
    expect(statusAndCode(await operator('POST', `${path}/support`, { reason: 'x' }))).toEqual([403, 'TENANT_SUSPENDED'])
    expect((await operator('POST', `${path}/resume`)).body.status).toBe('active')
    expect((await as('admin').get('/me')).status).toBe(200)
    expect(statusAndCode(await operator('POST', '/tenants/nobody/suspend'))).toEqual([404, 'TENANT_NOT_FOUND'])
  })

  test('hosts are replaced, and one of another tenant is refused', async () => {
    const [one, other] = [await createTestTenant(), await createTestTenant()]
    const path = `/tenants/${one.tenant.tenant}/hosts`
    const host = `${newId()}.example`
    expect((await operator('PUT', path, { hosts: [host] })).body).toEqual({ hosts: [host] })
    expect((await operator('GET', path)).body).toEqual({ hosts: [host] })
    const taken = await operator('PUT', `/tenants/${other.tenant.tenant}/hosts`, { hosts: [host] })
    expect(statusAndCode(taken)).toEqual([409, 'HOST_TAKEN'])
    expect(taken.body.details).toEqual({ hosts: [host] })
    const id = newId()
    const created = await operator('POST', '/tenants', { id, hosts: [`${id}.test`, host] })
    expect(statusAndCode(created)).toEqual([409, 'HOST_TAKEN'])
    expect(created.body.message).toContain(host)
    expect(statusAndCode(await operator('GET', `/tenants/${id}`))).toEqual([404, 'TENANT_NOT_FOUND'])
    expect(statusAndCode(await operator('PUT', path, { hosts: ['no host/'] }))).toEqual([400, 'INVALID_INPUT'])
  })
})

describe('support', () => {
  test('a link opens the tenant once as a user of the operator, the tenant and the operator see it, and it ends', async () => {
    const { tenant, as, origin } = await createTestTenant()
    const path = `/tenants/${tenant.tenant}`
    const { body, status } = await operator('POST', `${path}/support`, { reason: 'Ticket 42' })
    expect(status).toBe(200)
    const token = body.link.split('#')[1]
    const signIn = () => callApi('POST', `${origin}/api/signin/link`, { body: { token, authType: 'oauth' } })
    const { payload } = (await signIn()).body
    expect(payload.user.roles).toEqual(['admin', 'atoll-operator'])
    expect(statusAndCode(await signIn())).toEqual([400, 'INVALID_TOKEN'])
    const headers = { authorization: `Bearer ${payload.token}` }
    expect((await callApi('GET', `${origin}/api/users`, { headers })).status).toBe(200)
    const events = await as('admin').get('/events?eventName=support-opened')
    expect(events.body).toMatchObject([
      { source: 'accounts', user: payload.user._id, metadata: { reason: 'Ticket 42' } },
    ])
    const own = await operator('GET', `/events?tenant=${tenant.tenant}`)
    expect(own.body[0]).toMatchObject({ eventName: 'support-opened', metadata: { reason: 'Ticket 42' } })

    const again = await operator('POST', `${path}/support`, { reason: 'Ticket 43' })
    expect(again.body.link).not.toBe(body.link)
    const operators = await as('admin').get('/users?roles=atoll-operator')
    expect(operators.body).toHaveLength(1)
    advanceClock(HOUR + 1_000)
    await withLease(tenant, 'test', endSupportSessions)
    const refreshed = await callApi('POST', `${origin}/api/token/refresh`, {
      body: { refreshToken: payload.refreshToken },
    })
    expect(refreshed.status).toBe(401)
    resetClock()
  })

  test('requests at the same time make one user of the operator', async () => {
    const { tenant, as } = await createTestTenant()
    const open = () => operator('POST', `/tenants/${tenant.tenant}/support`, { reason: 'Ticket 44' })
    const opened = await Promise.all([open(), open(), open()])
    expect(opened.map(({ status }) => status)).toEqual([200, 200, 200])
    expect((await as('admin').get('/users?roles=atoll-operator')).body).toHaveLength(1)
  })

  test('nothing that outlives the session can be made in it: no API token, password or e-mail address', async () => {
    const { tenant, anonymous } = await createTestTenant()
    const { body } = await operator('POST', `/tenants/${tenant.tenant}/support`, { reason: 'Ticket 45' })
    const signedIn = await anonymous.post('/signin/link', { token: body.link.split('#')[1], authType: 'oauth' })
    const support = anonymous.with({ authorization: `Bearer ${signedIn.body.payload.token}` })
    for (const answer of [
      await support.post('/me/api-tokens', { nickname: 'lasting' }),
      await support.post('/me', { password: 'correct horse' }),
      await support.post('/me', { email: 'operator@example.com' }),
      await support.put(`/users/${signedIn.body.payload.user._id}`, { password: 'correct horse' }),
      await support.post('/me/totp', {}),
      await support.post('/me/passkeys/options', {}),
    ])
      expect(statusAndCode(answer)).toEqual([403, 'FORBIDDEN'])
  })

  test('the user of the operator is no administrator that a tenant could rely on', async () => {
    const id = newId()
    await operator('POST', '/tenants', { id })
    await operator('POST', `/tenants/${id}/support`, { reason: 'To look around' })
    expect((await operator('POST', `/tenants/${id}/setup-link`)).body.link).toContain('/admin/set-up')
  })
})

describe('the installation', () => {
  test('health has checks, the disk, the tenants, and the requests of the last minute', async () => {
    const lastMinute = new Minute(0)
    for (let n = 0; n < 40; n++) lastMinute.durations.record(n ? 0.004 : 0.2)
    lastMinute.errors = 2
    const minute = spyOn(recentRequests, 'getLastMinute').mockReturnValue(lastMinute)
    const { body } = await operator('GET', '/health')
    minute.mockRestore()
    expect(body).toMatchObject({
      engine: config.ATOLL_DATABASE_URL ? 'postgres' : 'sqlite',
      tenants: { total: expect.any(Number), suspended: expect.any(Number), maxOpen: 3 },
      requests: { total: 40, errors: 2, p95Seconds: 0.005 },
      timeZones: describeTimeZones(),
      jobs: { waiting: expect.any(Number), failing: expect.any(Number) },
      disk: { freeBytes: expect.any(Number), totalBytes: expect.any(Number) },
    })
    const folder = body.checks.find(({ check }: { check: string }) => check === 'data folder')
    expect(folder).toMatchObject({ ok: true })
  })

  test('settings have their sources, and secrets are not shown', async () => {
    const { body } = await operator('GET', '/settings')
    const byName = Object.fromEntries(body.map((setting: { name: string }) => [setting.name, setting]))
    expect(byName.ATOLL_DURABILITY).toMatchObject({ value: 'normal', source: 'environment' })
    expect(byName.ATOLL_PORT).toMatchObject({ value: 3000, source: 'default' })
    expect(byName.ATOLL_OPERATOR_TOKEN.value).toBe('(given)')
    expect(JSON.stringify(body)).not.toContain(TOKEN)
  })

  test('the log can be filtered by level and text, and is bounded', async () => {
    startLogTail()
    const write = (level: string, what: string) =>
      keepLogLine(`${JSON.stringify({ level, time: '2030-01-31T12:00:00.000Z', what })}\n`)
    for (let n = 0; n < 4_000; n++) write('info', `FILLER_${n} ${'x'.repeat(100)}`)
    write('error', 'NEEDLE_1')
    write('info', 'NEEDLE_2')
    const found = (await operator('GET', '/logs?q=NEEDLE')).body
    expect(found.map(({ text }: { text: string }) => JSON.parse(text).what)).toEqual(['NEEDLE_2', 'NEEDLE_1'])
    expect((await operator('GET', '/logs?q=NEEDLE&level=warn')).body).toMatchObject([{ level: 'error' }])
    const all = (await operator('GET', '/logs?limit=1000')).body
    expect(all.length).toBeGreaterThan(800)
    expect(all.length).toBeLessThanOrEqual(1_000)
    expect((await operator('GET', '/logs?q=FILLER_1%20')).body).toEqual([])
  })
})

describe('the token', () => {
  const routes = ['/tenants', '/tenants/x', '/tenants/x/hosts', '/events', '/health', '/settings', '/logs']

  test('nothing but the token counts', async () => {
    for (const path of routes) {
      for (const authorization of ['', 'Bearer', `Basic ${TOKEN}`])
        expect((await operator('GET', path, undefined, authorization)).status, path).toBe(401)
    }
    config.ATOLL_OPERATOR_TOKEN = ''
    expect((await operator('GET', '/tenants', undefined, 'Bearer ')).status).toBe(401)
    config.ATOLL_OPERATOR_TOKEN = TOKEN
  })

  test('after twenty wrong tokens in a minute others are refused, but the right one passes', async () => {
    advanceClock(61_000) // other tests send wrong tokens, too
    const statuses: number[] = []
    for (let n = 0; n < 22; n++) statuses.push((await operator('GET', '/events', undefined, `Bearer guess${n}`)).status)
    expect(statuses.slice(19)).toEqual([401, 429, 429])
    expect((await operator('GET', '/events')).status).toBe(200)
    resetClock()
  })

  test('behind a proxy that is not trusted all callers are one network, whose wrong tokens do not lock out the right one', async () => {
    advanceClock(122_000)
    const ask = (authorization: string, client: number) => {
      const headers = { authorization, 'x-forwarded-for': `198.51.100.${client}` }
      return callApi('GET', 'http://localhost/operator/events', { headers })
    }
    const statuses: number[] = []
    for (let client = 0; client < 22; client++) statuses.push((await ask(`Bearer guess${client}`, client)).status)
    expect(statuses.slice(19)).toEqual([401, 429, 429])
    for (const client of [0, 21, 200]) expect((await ask(`Bearer ${TOKEN}`, client)).status).toBe(200)
    resetClock()
  })
})
