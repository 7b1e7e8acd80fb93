import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { users } from '../../src/accounts/tables'
import { config } from '../../src/config'
import { databases, maxOpenTenants, tenantFolder } from '../../src/tenancy/databases'
import * as tenants from '../../src/tenancy/tenants'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  parseStatus,
  pollUntil,
  type RunningAtoll,
  runAtoll,
  sendRaw,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'

setDefaultTimeout(30_000)

/** An API token that could be one. */
const UNKNOWN_TOKEN = `atl_${'0'.repeat(64)}`
const newId = () => `n${crypto.randomUUID()}`

/** In PostgreSQL a tenant has no files of its own. */
const usesFiles = !config.ATOLL_DATABASE_URL

describe('which tenant is asked', () => {
  const me = (url: string, headers: Record<string, string> = {}) => callApi('GET', `${url}/api/me`, { headers })
  const expectUserOf = async (home: Awaited<ReturnType<typeof createTestTenant>>, url: string, headers = {}) => {
    const { status, body } = await me(url, { 'x-api-key': home.tokens.user, ...headers })
    expect([status, body._id]).toEqual([200, home.users.user])
  }

  test('the header says it, or else the host, or else the configuration', async () => {
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

  test('a 404 names the tenant or the host that was asked for, and says what to do', async () => {
    const { origin } = await createTestTenant()
    const message = async (headers: Record<string, string>) => (await me(origin, headers)).body.message
    expect(await message({ tenant: 'nobody' })).toBe('There is no tenant "nobody".')
    expect(await message({ tenant: 'ACME' })).toBe('There is no tenant "ACME". Ids of tenants are lower case.')
    expect(await message({ host: '127.0.0.1:3000' })).toBe(
      'No tenant answers at 127.0.0.1. Send the header "tenant", or ask the operator to give the tenant this host (atoll tenant hosts).',
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

  test('a host is compared without its port and its case', async () => {
    const home = await createTestTenant()
    for (const host of [`${home.id}.test:8080`, `${home.id.toUpperCase()}.TEST`, `${home.id}.test:`])
      await expectUserOf(home, 'http://any.test', { host })
  })

  test('a header that names nobody is not found, even where the host is somebody', async () => {
    const { origin, id } = await createTestTenant()
    for (const tenant of ['nobody', id.toUpperCase(), `${id},${id}`, '../registry', '.', `x' or ''='`, '%00', '\xff'])
      expect(statusAndCode(await me(origin, { tenant }))).toEqual([404, 'TENANT_NOT_FOUND'])
  })

  test('a suspended tenant answers 403 to everybody, and all of it is back when it is resumed', async () => {
    const home = await createTestTenant()
    await tenants.setStatus(home.id, 'suspended')
    for (const headers of [{}, { 'x-api-key': home.tokens.admin }, { tenant: home.id }] as Record<string, string>[])
      expect(statusAndCode(await me(home.origin, headers))).toEqual([403, 'TENANT_SUSPENDED'])
    await tenants.setStatus(home.id, 'active')
    await expectUserOf(home, home.origin)
  })
})

describe('making tenants', () => {
  test('nobody gets an id that would lead elsewhere as the name of a folder', async () => {
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
      await expect(tenants.createTenant(id), id).rejects.toMatchObject({ status: 400, code: 'INVALID_INPUT' })
    const longest = `${newId()}-`.padEnd(63, 'x')
    await tenants.createTenant(longest)
    if (usesFiles) expect(existsSync(join(config.ATOLL_TENANTS, longest, 'data.db'))).toBeTrue()
  })

  test('nobody gets a host that is none', async () => {
    for (const host of ['', ' ', 'a/b', 'a b', 'http://a.test', 'ä.test', 'a@b', 'a:b', '[::1', 'x'.repeat(254)]) {
      const id = newId()
      await expect(tenants.createTenant(id, [host]), host).rejects.toMatchObject({ status: 400, code: 'INVALID_INPUT' })
      await expect(tenants.getTenant(id)).rejects.toMatchObject({ code: 'TENANT_NOT_FOUND' })
    }
  })

  test('an id that is taken is told as such, without a word of its folder', async () => {
    const { id } = await createTestTenant()
    await expect(tenants.createTenant(id)).rejects.toThrow(`There is a tenant "${id}" already.`)
  })

  test('nobody takes the id or the host of another, and the attempt leaves nothing behind', async () => {
    const [{ id }, second] = [await createTestTenant(), newId()]
    const taken = { status: 409, code: 'TENANT_EXISTS' }
    await expect(tenants.createTenant(id)).rejects.toMatchObject(taken)
    await expect(tenants.createTenant(second, [`${second}.test`, `${id.toUpperCase()}.test:80`])).rejects.toMatchObject(
      taken,
    )
    expect((await tenants.listTenants()).map((one) => one.id)).not.toContain(second)
    await tenants.createTenant(second, [`${second}.test`])
    await expect(tenants.setHosts(second, [`${id}.test`])).rejects.toMatchObject(taken)
    expect((await tenants.getTenantInfo(second)).hosts).toEqual([`${second}.test`])
  })

  test('of two who take an id at the same time one gets it', async () => {
    const id = newId()
    const made = await Promise.allSettled([1, 2, 3].map(() => tenants.createTenant(id)))
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await (await tenants.getTenant(id)).db.$count(users)).toBe(0)
  })

  test('a host that is given twice is one host', async () => {
    const id = newId()
    await tenants.createTenant(id, [`${id}.test`, `${id}.TEST:80`])
    expect((await tenants.getTenantInfo(id)).hosts).toEqual([`${id}.test`])
    await tenants.setHosts(id, [`${id}.test`, `${id}.test`])
    expect((await tenants.getTenantInfo(id)).hosts).toEqual([`${id}.test`])
  })

  test('a folder that is there already is not taken over', async () => {
    const id = newId()
    await Bun.write(join(config.ATOLL_TENANTS, id, 'data.db'), 'not ours')
    await expect(tenants.createTenant(id)).rejects.toMatchObject({ status: 409, code: 'TENANT_EXISTS' })
    await expect(tenants.getTenant(id)).rejects.toMatchObject({ code: 'TENANT_NOT_FOUND' })
  })
})

describe('the end of a tenant', () => {
  test('its files are moved away, and its id and hosts are free', async () => {
    const home = await createTestTenant()
    const trash = await tenants.deleteTenant(home.id)
    if (usesFiles) {
      expect(existsSync(join(trash!, 'data.db'))).toBeTrue()
      expect(trash).toStartWith(join(config.ATOLL_TENANTS, '.trash'))
    }
    expect(existsSync(tenantFolder(home.id))).toBeFalse()
    expect(statusAndCode(await home.as('admin').get('/me'))).toEqual([404, 'TENANT_NOT_FOUND'])
    expect(statusAndCode(await home.as('admin').get('/me', { tenant: home.id }))).toEqual([404, 'TENANT_NOT_FOUND'])
    await expect(tenants.deleteTenant(home.id)).rejects.toMatchObject({ code: 'TENANT_NOT_FOUND' })
    await tenants.createTenant(newId(), [`${home.id}.test`])
  })

  test('a remade tenant of the same id shows nothing of the old one', async () => {
    const home = await createTestTenant()
    await home.as('admin').post('/blueprints', { key: 'things', name: 'Things', fields: [] })
    await tenants.deleteTenant(home.id)
    const remade = await tenants.createTenant(home.id, [`${home.id}.test`])
    expect(await remade.db.$count(users)).toBe(0)
    expect(statusAndCode(await home.as('admin').get('/blueprints/things'))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('what still holds a deleted tenant brings nothing of it back', async () => {
    const home = await createTestTenant()
    await tenants.deleteTenant(home.id)
    await home.tenant.db.query('select 1').catch(() => {})
    expect(existsSync(tenantFolder(home.id))).toBeFalse()
    await tenants.createTenant(home.id)
  })

  test('what still holds a deleted tenant neither sees nor changes its successor', async () => {
    const home = await createTestTenant()
    await tenants.deleteTenant(home.id)
    const remade = await tenants.createTenant(home.id)
    await remade.write((tx) => tx.query('insert into versions (topic, version) values (?, ?)', ['mine', 1]))
    const seen = await home.tenant.db.query('select version from versions where topic = ?', ['mine']).catch(() => [])
    expect(seen).toEqual([])
    await home.tenant.write((tx) => tx.query('update versions set version = 2')).catch(() => {})
    expect(await remade.db.query('select version from versions where topic = ?', ['mine'])).toEqual([[1]])
  })
})

test('a long use survives the closing of its tenant', async () => {
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

describe('a server that others reach', () => {
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
    'the host %s is nobody, or no host at all',
    async (_, host) => {
      for (const path of ['/api/me', '/api/v1/me', '/health']) {
        const request = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
        const answer = await sendRaw(server.port, [Buffer.from(request, 'latin1')])
        expect(parseStatus(answer)).toBeOneOf(path === '/health' ? [200, 400, 431] : [400, 404, 431])
      }
    },
  )

  const requests: [string, string, number[]][] = [
    ['no Host', 'GET /api/me HTTP/1.1\r\nConnection: close\r\n\r\n', [400, 404]],
    ['two Hosts', 'GET /api/me HTTP/1.1\r\nHost: a.test\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [400, 404]],
    ['HTTP/1.0 without Host', 'GET /api/me HTTP/1.0\r\n\r\n', [400, 404, 505]],
    ['HTTP/1.0 with Host', 'GET /health HTTP/1.0\r\nHost: acme.test\r\n\r\n', [200, 505]],
    [
      'absolute form',
      'GET http://acme.test/health HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [200, 400, 404],
    ],
    ['absolute form and no Host', 'GET http://acme.test/api/me HTTP/1.1\r\nConnection: close\r\n\r\n', [400, 401, 404]],
    ['//', 'GET // HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [404]],
    ['//evil.test/api/me', 'GET //evil.test/api/me HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [404]],
    [
      '%ff in the path',
      'GET /api/blueprints/%ff HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [400, 401, 404],
    ],
    ['%ff in an alias', 'GET /api/v1/%ff HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [400, 404]],
    ['%ff in the query', 'GET /api/me?a=%ff&%ff HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [400, 401]],
    ['% alone', 'GET /% HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [400, 404]],
    ['* as the path', 'OPTIONS * HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [200, 204, 400, 404, 405]],
    ['no path', 'GET  HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [400, 404]],
    [
      'a method of nobody',
      'BREW /health HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [0, 400, 404, 405, 501],
    ],
    [
      'CONNECT',
      'CONNECT acme.test:80 HTTP/1.1\r\nHost: acme.test:80\r\nConnection: close\r\n\r\n',
      [400, 404, 405, 501],
    ],
    ['a fragment', 'GET /api/me#x HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n', [400, 401, 404]],
    [
      'bytes beyond ASCII in the path',
      'GET /api/\xff\xfe HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n',
      [400, 404],
    ],
  ]
  test.each(requests)('%s never gives a 500', async (_, request, statuses) => {
    expect(parseStatus(await sendRaw(server.port, [Buffer.from(request, 'latin1')]))).toBeOneOf(statuses)
  })

  test('an address at the tenant is its own in absolute form, too', async () => {
    const request = 'GET http://acme.test/api/v1/me HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\n\r\n'
    expect(parseStatus(await sendRaw(server.port, [request]))).toBe(401)
  })

  test('it goes on after all of that, and what it logged are no failures of its own', async () => {
    await using another = await startAtoll({ at: createTempFolder() })
    for (const [, request] of requests) await sendRaw(another.port, [Buffer.from(request, 'latin1')])
    expect((await fetch(`${another.url}/health`)).status).toBe(200)
    await another.end('SIGTERM')
    expect(await another.logged).toBe('')
  })

  test('the word of a proxy counts only where it is trusted', async () => {
    const headers = { host: 'elsewhere.test', 'x-forwarded-host': 'acme.test' }
    const { status, body } = await apiCaller(server.url, headers)('GET', '/api/me')
    expect([status, body.code]).toEqual([404, 'TENANT_NOT_FOUND'])
  })
})

test('with ATOLL_TRUST_PROXY the host is the one that the proxy was asked for', async () => {
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

test('a tenant that is alone answers wherever no host names another; with a second one the setting has to say who does', async () => {
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
    expect([made.code, made.err]).toEqual([0, expect.stringContaining('Set ATOLL_DEFAULT_TENANT')])
    const refused = (answer: string) => answer === '404 TENANT_NOT_FOUND'
    expect(await pollUntil(() => me(server, unmapped), refused)).toBe('404 TENANT_NOT_FOUND')
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

test('with ATOLL_TENANT_HEADER=off nobody chooses a tenant by header', async () => {
  const at = { at: createTempFolder(), env: { ATOLL_TENANT_HEADER: 'off', ATOLL_DEFAULT_TENANT: 'other' } }
  await createTenantByCli(at, 'acme')
  await createTenantByCli(at, 'other')
  await using server = await startAtoll(at)
  const headers = await signIn(server.url, 'acme') // who is signed in by default, to "other"
  const me = (more: Record<string, string>) => apiCaller(server.url, { ...headers, ...more })('GET', '/api/me')
  expect((await me({ tenant: 'acme' })).status).toBe(200)
  expect((await me({ tenant: 'nobody' })).status).toBe(200)
  expect((await me({ tenant: 'other', host: 'acme.test' })).status).toBe(401)
})

describe('a server and the command line', () => {
  const me = (server: RunningAtoll, headers: Record<string, string>) => () =>
    apiCaller(server.url, headers)('GET', '/api/me')

  test('a server that had a tenant open shows nothing of it once it is deleted and remade', async () => {
    const at = { at: createTempFolder() }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const old = await signIn(server.url, 'acme')
    const made = await apiCaller(server.url, old)('POST', '/api/blueprints', { key: 'old', name: 'Old', fields: [] })
    expect(made.status).toBe(201)
    await runAtoll('tenant delete acme --yes', at)
    await createTenantByCli(at, 'acme')
    expect((await pollUntil(me(server, old), ({ status }) => status === 401)).status).toBe(401)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    expect((await call('GET', '/api/blueprints')).body).toEqual([])
    expect((await call('POST', '/api/blueprints', { key: 'new', name: 'New', fields: [] })).status).toBe(201)
    expect((await call('GET', '/api/blueprints')).body).toMatchObject([{ key: 'new' }])
    await server.end('SIGTERM')
    expect((await runAtoll('doctor --json', at)).json.checks).toContainEqual(
      expect.objectContaining({ check: 'tenant acme', ok: true }),
    )
  })

  test('a deleted tenant does not come back by a request that a server gets before it knows', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_OPEN_TENANTS: '1' } }
    for (const id of ['acme', 'other']) await createTenantByCli(at, id)
    await using server = await startAtoll(at)
    for (let round = 0; round < 2; round++) {
      const ask = me(server, { tenant: 'acme', 'x-api-key': UNKNOWN_TOKEN })
      await pollUntil(ask, ({ status }) => status === 401)
      await me(server, { tenant: 'other', 'x-api-key': UNKNOWN_TOKEN })() // which closes acme
      expect((await runAtoll('tenant delete acme --yes', at)).code).toBe(0)
      await ask()
      expect(existsSync(join(at.at, 'tenants/acme'))).toBeFalse()
      await createTenantByCli(at, 'acme')
    }
  }, 20_000)
})
