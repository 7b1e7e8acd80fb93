import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { users } from '../../src/accounts/tables'
import { config } from '../../src/config'
import { databases, maxOpenTenants, tenantFolder } from '../../src/tenancy/databases'
import { chooseDefaultTenant } from '../../src/tenancy/default-tenant'
import { locationOf } from '../../src/tenancy/placement'
import { registry } from '../../src/tenancy/registry'
import { tenants as tenantsTable } from '../../src/tenancy/tables'
import { getTenantInfo, listTenants } from '../../src/tenancy/tenant-list'
import * as tenants from '../../src/tenancy/tenants'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  parseStatus,
  type RunningAtoll,
  runAtoll,
  sendRaw,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { errorOf } from '../rejections'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(30_000)

/** A well-formed API token that does not exist. */
const UNKNOWN_TOKEN = `atl_${'0'.repeat(64)}`
const newId = () => `n${crypto.randomUUID()}`

/** On PostgreSQL a tenant has no files of its own. */
const usesFiles = !config.ATOLL_DATABASE_URL

describe('the tenant of a request', () => {
  const me = (url: string, headers: Record<string, string> = {}) => callApi('GET', `${url}/api/me`, { headers })
  const expectUserOf = async (t: Awaited<ReturnType<typeof createTestTenant>>, url: string, headers = {}) => {
    const { status, body } = await me(url, { 'x-api-key': t.tokens.user, ...headers })
    expect([status, body._id]).toEqual([200, t.users.user])
  }

  test('the header selects the tenant of a request, or else the host, or else ATOLL_DEFAULT_TENANT', async () => {
    const [one, other] = [await createTestTenant(), await createTestTenant()]
    await expectUserOf(one, one.origin)
    await expectUserOf(one, 'http://elsewhere.test', { tenant: one.id })
    await expectUserOf(one, other.origin, { tenant: one.id })
    expect(statusAndCode(await me(other.origin, { 'x-api-key': one.tokens.user }))).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await me('http://elsewhere.test'))).toEqual([404, 'TENANT_NOT_FOUND'])
    config.ATOLL_DEFAULT_TENANT = one.id
    try {
      await expectUserOf(one, 'http://elsewhere.test')
      await expectUserOf(other, other.origin)
      await expectUserOf(other, 'http://elsewhere.test', { tenant: other.id })
    } finally {
      config.ATOLL_DEFAULT_TENANT = ''
    }
  })

  test('the message of a 404 TENANT_NOT_FOUND names the requested tenant or host and what to do', async () => {
    const { origin } = await createTestTenant()
    const message = async (headers: Record<string, string>) => (await me(origin, headers)).body.message
    expect(await message({ tenant: 'nobody' })).toBe('There is no tenant "nobody".')
    expect(await message({ tenant: 'ACME' })).toBe('There is no tenant "ACME". Ids of tenants are lower case.')
    expect(await message({ host: 'nowhere.test:3000' })).toBe(
      'No tenant answers at nowhere.test. Send the header "tenant", or ask the operator to give the tenant this host (atoll tenant hosts).',
    )
    expect(await message({ host: '' })).toStartWith('The request names no host.')
    config.ATOLL_TENANT_HEADER = 'off'
    try {
      expect(await message({ host: 'x.test' })).toBe(
        'No tenant answers at x.test. Ask the operator to give the tenant this host (atoll tenant hosts).',
      )
    } finally {
      config.ATOLL_TENANT_HEADER = 'on'
    }
  })

  test('the default tenant answers at a host of no tenant, without a query after the first, until the host is given away', async () => {
    const [first, other] = [await createTestTenant(), await createTestTenant()]
    const host = `${crypto.randomUUID()}.test`
    const resolve = () => tenants.resolveTenant(new Request('http://any.test', { headers: { host } }))
    await chooseDefaultTenant({ mode: 'everywhere', tenant: first.id })
    try {
      expect((await resolve()).tenant).toBe(first.id)
      expect(resolve()).toMatchObject({ tenant: first.id })
      await tenants.setHosts(other.id, [host])
      expect((await resolve()).tenant).toBe(other.id)
    } finally {
      await chooseDefaultTenant({ mode: 'local' })
    }
  })

  test('the host of a request selects the tenant regardless of port and case', async () => {
    const t = await createTestTenant()
    for (const host of [`${t.id}.test:8080`, `${t.id.toUpperCase()}.TEST`, `${t.id}.test:`])
      await expectUserOf(t, 'http://any.test', { host })
  })

  test('an unknown or invalid tenant header answers 404 TENANT_NOT_FOUND even at the host of a tenant', async () => {
    const { origin, id } = await createTestTenant()
    for (const tenant of ['nobody', id.toUpperCase(), `${id},${id}`, '../registry', '.', `x' or ''='`, '%00', '\xff'])
      expect(statusAndCode(await me(origin, { tenant }))).toEqual([404, 'TENANT_NOT_FOUND'])
  })

  test('a suspended tenant answers 403 TENANT_SUSPENDED to all callers, and works again once it is resumed', async () => {
    const t = await createTestTenant()
    await tenants.setStatus(t.id, 'suspended')
    for (const headers of [{}, { 'x-api-key': t.tokens.admin }, { tenant: t.id }] as Record<string, string>[])
      expect(statusAndCode(await me(t.origin, headers))).toEqual([403, 'TENANT_SUSPENDED'])
    await tenants.setStatus(t.id, 'active')
    await expectUserOf(t, t.origin)
  })
})

describe('createTenant', () => {
  test('createTenant refuses ids that are unsafe as a folder name with 400 INVALID_INPUT', async () => {
    const ids = [
      '',
      '.',
      '..',
      '../x',
      'a/b',
      'a\\b',
      '/etc',
      '-a',
      '.trash',
      'A',
      'ä',
      "a'b",
      'a\n',
      'a b',
      'a.db',
      'a\0',
    ]
    for (const id of [...ids, 'a'.repeat(64)])
      expect(await errorOf(tenants.createTenant(id)), id).toMatchObject({ status: 400, code: 'INVALID_INPUT' })
    const longest = `${newId()}-`.padEnd(63, 'x')
    await tenants.createTenant(longest)
    if (usesFiles) expect(existsSync(join(config.ATOLL_TENANTS, longest, 'data.db'))).toBeTrue()
  })

  test('createTenant refuses invalid hosts with 400 INVALID_INPUT and creates no tenant', async () => {
    for (const host of ['', ' ', 'a/b', 'a b', 'http://a.test', 'ä.test', 'a@b', 'a:b', '[::1', 'x'.repeat(254)]) {
      const id = newId()
      expect(await errorOf(tenants.createTenant(id, [host])), host).toMatchObject({
        status: 400,
        code: 'INVALID_INPUT',
      })
      expect(await errorOf(tenants.getTenant(id))).toMatchObject({ code: 'TENANT_NOT_FOUND' })
    }
  })

  test('createTenant refuses a taken id with a message that names only the id', async () => {
    const { id } = await createTestTenant()
    expect((await errorOf(tenants.createTenant(id))).message).toContain(`There is a tenant "${id}" already.`)
  })

  test('createTenant and setHosts refuse a taken id with 409 TENANT_EXISTS and a taken host with HOST_TAKEN, and change nothing', async () => {
    const [{ id }, second] = [await createTestTenant(), newId()]
    const taken = { status: 409, code: 'HOST_TAKEN', more: { details: { hosts: [`${id}.test`] } } }
    expect(await errorOf(tenants.createTenant(id))).toMatchObject({ status: 409, code: 'TENANT_EXISTS' })
    expect(
      await errorOf(tenants.createTenant(second, [`${second}.test`, `${id.toUpperCase()}.test:80`])),
    ).toMatchObject(taken)
    expect((await listTenants()).map((one) => one.id)).not.toContain(second)
    await tenants.createTenant(second, [`${second}.test`])
    expect(await errorOf(tenants.setHosts(second, [`${id}.test`]))).toMatchObject(taken)
    expect((await getTenantInfo(second)).hosts).toEqual([`${second}.test`])
  })

  test('createTenant succeeds once when three calls create the same id at the same time', async () => {
    const id = newId()
    const made = await Promise.allSettled([1, 2, 3].map(() => tenants.createTenant(id)))
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await (await tenants.getTenant(id)).db.$count(users)).toBe(0)
  })

  test('createTenant and setHosts store a repeated host once', async () => {
    const id = newId()
    await tenants.createTenant(id, [`${id}.test`, `${id}.TEST:80`])
    expect((await getTenantInfo(id)).hosts).toEqual([`${id}.test`])
    await tenants.setHosts(id, [`${id}.test`, `${id}.test`])
    expect((await getTenantInfo(id)).hosts).toEqual([`${id}.test`])
  })

  test('createTenant refuses an id whose folder already exists with 409 TENANT_EXISTS', async () => {
    const id = newId()
    await Bun.write(join(config.ATOLL_TENANTS, id, 'data.db'), 'not ours')
    expect(await errorOf(tenants.createTenant(id))).toMatchObject({ status: 409, code: 'TENANT_EXISTS' })
    expect(await errorOf(tenants.getTenant(id))).toMatchObject({ code: 'TENANT_NOT_FOUND' })
  })
})

describe('deleteTenant', () => {
  test('deleteTenant moves the files to .trash and frees the hosts of the tenant', async () => {
    const t = await createTestTenant()
    const trash = await tenants.deleteTenant(t.id)
    if (usesFiles) {
      expect(existsSync(join(trash!, 'data.db'))).toBeTrue()
      expect(trash).toStartWith(join(config.ATOLL_TENANTS, '.trash'))
    }
    expect(existsSync(tenantFolder(t.id))).toBeFalse()
    expect(statusAndCode(await t.as('admin').get('/me'))).toEqual([404, 'TENANT_NOT_FOUND'])
    expect(statusAndCode(await t.as('admin').get('/me', { tenant: t.id }))).toEqual([404, 'TENANT_NOT_FOUND'])
    expect(await errorOf(tenants.deleteTenant(t.id))).toMatchObject({ code: 'TENANT_NOT_FOUND' })
    await tenants.createTenant(newId(), [`${t.id}.test`])
  })

  test('a recreated tenant of the same id has no data of the deleted one', async () => {
    const t = await createTestTenant()
    await t.as('admin').post('/blueprints', { key: 'things', name: 'Things', fields: [] })
    await tenants.deleteTenant(t.id)
    const recreated = await tenants.createTenant(t.id, [`${t.id}.test`])
    expect(await recreated.db.$count(users)).toBe(0)
    expect(statusAndCode(await t.as('admin').get('/blueprints/things'))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('a query by a stale store of a deleted tenant does not recreate its folder', async () => {
    const t = await createTestTenant()
    await tenants.deleteTenant(t.id)
    await t.tenant.db.query('select 1').catch(() => {})
    expect(existsSync(tenantFolder(t.id))).toBeFalse()
    await tenants.createTenant(t.id)
  })

  test('a stale store of a deleted tenant neither reads nor writes the recreated tenant', async () => {
    const t = await createTestTenant()
    await tenants.deleteTenant(t.id)
    const recreated = await tenants.createTenant(t.id)
    await recreated.write((tx) => tx.query('insert into versions (topic, version) values (?, ?)', ['mine', 1]))
    const seen = await t.tenant.db.query('select version from versions where topic = ?', ['mine']).catch(() => [])
    expect(seen).toEqual([])
    await t.tenant.write((tx) => tx.query('update versions set version = 2')).catch(() => {})
    expect(await recreated.db.query('select version from versions where topic = ?', ['mine'])).toEqual([[1]])
  })
})

test('a store keeps working after its database was closed to stay below the limit of open tenants', async () => {
  const { tenant } = await createTestTenant()
  async function* stream() {
    for (let n = 0; n < 3; n++) {
      yield tenant.db.$count(users)
      for (let other = 0; other < 4; other++) await createTestTenant() // more than may stay open
    }
  }
  const seen: number[] = []
  for await (const count of stream()) seen.push(count)
  expect(seen).toEqual([4, 4, 4])
  expect(databases.openCount).toBeLessThanOrEqual(Number(maxOpenTenants))
})

describe('a server that gets malformed requests', () => {
  const at = { at: createTempFolder() }
  let server: RunningAtoll
  beforeAll(async () => {
    await createTenantByCli(at, 'acme')
    await runAtoll('tenant create second', at) // for a tenant that is alone answers at every host
    server = await startAtoll(at)
  })
  afterAll(() => server?.end('SIGKILL'))

  const hosts = ['', ' ', 'a b', '%', '[', '[::1', ']:', '://', '/', '\\', '?', '#', '@', 'a@b:c', ':80', 'a:99999']
  const odd = [
    'a:x',
    '\x7f',
    '\xff\xfe',
    'ä',
    '-',
    '.',
    '..',
    '\t',
    '"',
    '<>',
    'a,b',
    'x'.repeat(5_000),
    '0',
    '1.2.3.4.5',
  ]

  test.each([...hosts, ...odd].map((host) => [JSON.stringify(host.slice(0, 20)), host] as const))(
    'the Host header %s selects no tenant and never causes a 500',
    async (_, host) => {
      for (const path of ['/api/me', '/api/v1/me', '/health']) {
        const request = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
        const answer = await sendRaw(server.port, [Buffer.from(request, 'latin1')])
        expect(parseStatus(answer)).toBeOneOf(path === '/health' ? [200, 400, 431] : [400, 404, 431])
      }
    },
  )

  const requests: [string, string, number[]][] = [
    ['a request without Host', 'GET /api/me HTTP/1.1\r\nConnection: close\r\n\r\n', [400, 404]],
    [
      'a request with two Host headers',
      'GET /api/me HTTP/1.1\r\nHost: a.test\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [400, 404],
    ],
    ['an HTTP/1.0 request without Host', 'GET /api/me HTTP/1.0\r\n\r\n', [400, 404, 505]],
    ['an HTTP/1.0 request with Host', 'GET /health HTTP/1.0\r\nHost: acme.test\r\n\r\n', [200, 505]],
    [
      'a request in absolute form',
      'GET http://acme.test/health HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [200, 400, 404],
    ],
    [
      'a request in absolute form without Host',
      'GET http://acme.test/api/me HTTP/1.1\r\nConnection: close\r\n\r\n',
      [400, 401, 404],
    ],
    ['the path //', 'GET // HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [404]],
    [
      'the path //evil.test/api/me',
      'GET //evil.test/api/me HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [404],
    ],
    [
      'the byte %ff in the path',
      'GET /api/blueprints/%ff HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [400, 401, 404],
    ],
    [
      'the byte %ff in a version alias',
      'GET /api/v1/%ff HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [400, 404],
    ],
    [
      'the byte %ff in the query',
      'GET /api/me?a=%ff&%ff HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [400, 401],
    ],
    ['a lone % in the path', 'GET /% HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [400, 404]],
    ['the path *', 'OPTIONS * HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [200, 204, 400, 404, 405]],
    ['a request without a path', 'GET  HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [400, 404]],
    [
      'an unknown method',
      'BREW /health HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [0, 400, 404, 405, 501],
    ],
    [
      'the method CONNECT',
      'CONNECT acme.test:80 HTTP/1.1\r\nHost: acme.test:80\r\nConnection: close\r\n\r\n',
      [400, 404, 405, 501],
    ],
    [
      'a fragment in the path',
      'GET /api/me#x HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [400, 401, 404],
    ],
    [
      'bytes beyond ASCII in the path',
      'GET /api/\xff\xfe HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [400, 404],
    ],
  ]
  test.each(requests)('%s never causes a 500', async (_, request, statuses) => {
    expect(parseStatus(await sendRaw(server.port, [Buffer.from(request, 'latin1')]))).toBeOneOf(statuses)
  })

  test('a versioned path in absolute form reaches the tenant of its host and answers 401', async () => {
    const request = 'GET http://acme.test/api/v1/me HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n'
    expect(parseStatus(await sendRaw(server.port, [request]))).toBe(401)
  })

  test('a server stays healthy after malformed requests and logs no errors about them', async () => {
    await using another = await startAtoll({ at: createTempFolder() })
    for (const [, request] of requests) await sendRaw(another.port, [Buffer.from(request, 'latin1')])
    expect((await fetch(`${another.url}/health`)).status).toBe(200)
    await another.end('SIGTERM')
    expect(await another.logged).toBe('')
  })

  test('a server ignores X-Forwarded-Host without ATOLL_TRUST_PROXY and answers 404 TENANT_NOT_FOUND', async () => {
    const headers = { host: 'elsewhere.test', 'x-forwarded-host': 'acme.test' }
    const { status, body } = await apiCaller(server.url, headers)('GET', '/api/me')
    expect([status, body.code]).toEqual([404, 'TENANT_NOT_FOUND'])
  })
})

test('ATOLL_TRUST_PROXY=on makes X-Forwarded-Host select the tenant', async () => {
  const at = { at: createTempFolder(), env: { ATOLL_TRUST_PROXY: 'on' } }
  await createTenantByCli(at, 'acme')
  await runAtoll('tenant create second', at)
  await using server = await startAtoll(at)
  const status = async (headers: Record<string, string>) =>
    (await apiCaller(server.url, headers)('GET', '/api/me')).status
  expect(await status({ host: 'elsewhere.test', 'x-forwarded-host': 'acme.test' })).toBe(401)
  expect(await status({ host: 'elsewhere.test', 'x-forwarded-host': 'ACME.test:443' })).toBe(401)
  expect(await status({ host: 'acme.test' })).toBe(401)
  expect(await status({ host: 'acme.test', 'x-forwarded-host': 'elsewhere.test' })).toBe(404)
  expect(await status({ host: 'acme.test', 'x-forwarded-host': '[%' })).toBe(404)
})

test('the only tenant serves unmapped hosts; with two tenants only ATOLL_DEFAULT_TENANT serves unmapped names', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  const me = async (server: RunningAtoll, headers: Record<string, string>) => {
    const { status, body } = await apiCaller(server.url, headers)('GET', '/api/me')
    return body.username ?? `${status} ${body.code}`
  }
  const unmapped = { host: 'elsewhere.test' }
  let token = ''
  {
    await using server = await startAtoll(at)
    token = (await signIn(server.url, 'acme')).authorization ?? ''
    for (const host of ['elsewhere.test', '127.0.0.1', 'acme.test'])
      expect(await me(server, { host, authorization: token })).toBe('root')
    expect(await me(server, { tenant: 'nobody' })).toBe('404 TENANT_NOT_FOUND')

    const made = await runAtoll('tenant create other', at)
    expect([made.code, made.err]).toEqual([0, expect.stringContaining('answers at localhost and at IP addresses')])
    const isNotFound = (answer: string) => answer === '404 TENANT_NOT_FOUND'
    expect(await waitUntil(() => me(server, unmapped), isNotFound)).toBe('404 TENANT_NOT_FOUND')
    expect(await me(server, { host: 'acme.test', authorization: token })).toBe('root')
  }
  for (const [setting, answer] of [
    ['acme', 'root'],
    ['other', '401 UNAUTHENTICATED'],
    ['nope', '404 TENANT_NOT_FOUND'],
  ] as const) {
    await using server = await startAtoll({ ...at, env: { ATOLL_DEFAULT_TENANT: setting } })
    expect(await me(server, { ...unmapped, authorization: token })).toBe(answer)
  }
})

test('ATOLL_TENANT_HEADER=off makes the server ignore the tenant header', async () => {
  const at = { at: createTempFolder(), env: { ATOLL_TENANT_HEADER: 'off', ATOLL_DEFAULT_TENANT: 'other' } }
  await createTenantByCli(at, 'acme')
  await createTenantByCli(at, 'other')
  await using server = await startAtoll(at)
  const headers = await signIn(server.url, 'acme') // signs in to the default tenant "other"
  const me = (more: Record<string, string>) => apiCaller(server.url, { ...headers, ...more })('GET', '/api/me')
  expect((await me({ tenant: 'acme' })).status).toBe(200)
  expect((await me({ tenant: 'nobody' })).status).toBe(200)
  expect((await me({ tenant: 'other', host: 'acme.test' })).status).toBe(401)
})

describe('a server while the command line deletes tenants', () => {
  const me = (server: RunningAtoll, headers: Record<string, string>) => () =>
    apiCaller(server.url, headers)('GET', '/api/me')

  test('a server that had a tenant open shows none of its data once the tenant is deleted and recreated', async () => {
    const at = { at: createTempFolder() }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const old = await signIn(server.url, 'acme')
    const made = await apiCaller(server.url, old)('POST', '/api/blueprints', { key: 'old', name: 'Old', fields: [] })
    expect(made.status).toBe(201)
    await runAtoll('tenant delete acme --yes', at)
    await createTenantByCli(at, 'acme')
    expect((await waitUntil(me(server, old), ({ status }) => status === 401)).status).toBe(401)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    expect((await call('GET', '/api/blueprints')).body).toEqual([])
    expect((await call('POST', '/api/blueprints', { key: 'new', name: 'New', fields: [] })).status).toBe(201)
    expect((await call('GET', '/api/blueprints')).body).toMatchObject([{ key: 'new' }])
    await server.end('SIGTERM')
    expect((await runAtoll('doctor --json', at)).json.checks).toContainEqual(
      expect.objectContaining({ check: 'tenant acme', ok: true }),
    )
  })

  test('a request that reaches a server right after `tenant delete` does not recreate the folder', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_OPEN_TENANTS: '1' } }
    for (const id of ['acme', 'other']) await createTenantByCli(at, id)
    await using server = await startAtoll(at)
    for (let round = 0; round < 2; round++) {
      const ask = me(server, { tenant: 'acme', 'x-api-key': UNKNOWN_TOKEN })
      await waitUntil(ask, ({ status }) => status === 401)
      await me(server, { tenant: 'other', 'x-api-key': UNKNOWN_TOKEN })() // which closes acme
      expect((await runAtoll('tenant delete acme --yes', at)).code).toBe(0)
      await ask()
      expect(existsSync(join(at.at, 'tenants/acme'))).toBeFalse()
      await createTenantByCli(at, 'acme')
    }
  }, 20_000)
})

test('eachOpenServedSince yields the tenants that were used and are open, and leaves out one that is closed meanwhile', async () => {
  const [one, other, unused] = [await createTestTenant(), await createTestTenant(), await createTestTenant()]
  const since = performance.now()
  for (const { id } of [one, other]) expect((await tenants.resolveTenant(requestOf(id))).tenant).toBe(id)
  const own = [one.id, other.id, unused.id]
  const seen: string[] = []
  for await (const { tenant } of tenants.eachOpenServedSince(since, 0)) {
    if (!own.includes(tenant)) continue
    seen.push(tenant)
    const record = await registry.db.select().from(tenantsTable).where(eq(tenantsTable.id, other.id)).get()
    await databases.release(locationOf(record!))
  }
  expect(seen).toEqual([one.id])
})

const requestOf = (tenant: string) => new Request('http://localhost', { headers: { tenant } })
