import { afterEach, describe, expect, test } from 'bun:test'
import { invalidateActors } from '../../src/accounts/actors'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { config } from '../../src/config'
import { moveClock } from '../../src/core/clock'
import { handleRequest } from '../../src/gateway'
import { attachClaim, Claim, withClaim } from '../../src/http/idempotency/claim'
import type { DeferredWrite } from '../../src/storage/port'
import { getTenant, type Tenant } from '../../src/tenancy/tenants'
import { type ApiClient, apiClient, callApi, createTestTenant, fullAccessRules, statusAndCode } from '../test-tenant'

const DAY = 86_400_000
const REPLAYED_HEADER = 'idempotency-replayed'
const createKey = (of = crypto.randomUUID() as string) => ({ 'idempotency-key': of })

afterEach(() => moveClock())

async function createThingsFixture(permissions: object[] = fullAccessRules('tenant', 'user')) {
  const own = await createTestTenant()
  const fields = [
    { key: 'title', type: 'string', required: true },
    { key: 'code', type: 'string', unique: true },
  ]
  const created = await own.as('admin').post('/blueprints', { key: 'things', name: 'Things', fields, permissions })
  expect(created.status).toBe(201)
  const path = '/blueprints/things/entities'
  const count = async () => Number((await own.tenant.db.query('select count(*) from entities'))[0]![0])
  const storedKeys = async () => (await own.tenant.db.query('select * from idempotency_keys')) as unknown[][]
  return { ...own, path, count, storedKeys, user: own.as('user') }
}

test('a write under an Idempotency-Key runs in a transaction of its own where it asks for an exclusive one', async () => {
  const { tenant, origin } = await createTestTenant()
  const request = new Request(origin)
  const claim = new Claim('exclusive', () => undefined)
  attachClaim(request, claim)
  const done: string[] = []
  const deferred: DeferredWrite = async () => void done.push('deferred before')
  await Promise.all([
    tenant.write(async (tx) => tx.defer(deferred, 'key', 1)),
    withClaim(request, tenant).write(async () => void done.push('exclusive'), { exclusive: true }),
  ])
  claim.stopRenewal()
  expect(done).toEqual(['deferred before', 'exclusive'])
  expect(claim.held).toBe(true)
})

describe('POST with an Idempotency-Key', () => {
  test('a repeated POST with one Idempotency-Key is executed once and gets the same response each time', async () => {
    const { user, path, count } = await createThingsFixture()
    const same = createKey()
    const first = await user.post(path, { title: 'x' }, same)
    expect([first.status, first.headers.get(REPLAYED_HEADER)]).toEqual([201, null])
    for (let n = 0; n < 3; n++) {
      const again = await user.post(path, { title: 'x' }, same)
      expect([again.status, again.headers.get(REPLAYED_HEADER)]).toEqual([201, 'true'])
      expect(again.body).toEqual(first.body)
      for (const name of ['etag', 'content-type']) expect(again.headers.get(name)).toBe(first.headers.get(name))
      expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
    }
    expect(await count()).toBe(1)
    expect((await user.post(path, { title: 'x' }, createKey())).headers.get(REPLAYED_HEADER)).toBeNull()
    expect(await count()).toBe(2)
  })

  test('an Idempotency-Key with another body or query gets 422 IDEMPOTENCY_KEY_REUSED', async () => {
    const { user, path, count } = await createThingsFixture()
    const same = createKey()
    await user.post(path, { title: 'x' }, same)
    expect(statusAndCode(await user.post(path, { title: 'y' }, same))).toEqual([422, 'IDEMPOTENCY_KEY_REUSED'])
    expect(statusAndCode(await user.post(path, undefined, same))).toEqual([422, 'IDEMPOTENCY_KEY_REUSED'])
    expect(statusAndCode(await user.post(`${path}?$flat=false`, { title: 'x' }, same))).toEqual([
      422,
      'IDEMPOTENCY_KEY_REUSED',
    ])
    expect(await count()).toBe(1)
  })

  test('twenty simultaneous POSTs with one Idempotency-Key are executed once and all get the same response', async () => {
    const { user, path, count } = await createThingsFixture()
    const same = createKey()
    const answers = await Promise.all(Array.from({ length: 20 }, () => user.post(path, { title: 'x' }, same)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
    expect(new Set(answers.map(({ body }) => body._id)).size).toBe(1)
    expect(answers.filter(({ headers }) => headers.get(REPLAYED_HEADER)).length).toBe(19)
    expect(await count()).toBe(1)
  })

  test('an Idempotency-Key is scoped to its caller, path and tenant, and /api/v1 is the same path as /api', async () => {
    const { as, user, path, count } = await createThingsFixture()
    const [same, otherFixture] = [createKey(), await createThingsFixture()]
    const answers = [
      await user.post(path, { title: 'x' }, same),
      await as('other').post(path, { title: 'x' }, same),
      await user.post(`${path}/batch`, { operations: [{ op: 'create', data: { title: 'x' } }] }, same),
      await otherFixture.user.post(path, { title: 'x' }, same),
    ]
    expect(answers.map(({ status, headers }) => [status, headers.get(REPLAYED_HEADER)])).toEqual([
      [201, null],
      [201, null],
      [200, null],
      [201, null],
    ])
    expect(await count()).toBe(3)
    const aliased = await user.post(`/v1${path}`, { title: 'x' }, same)
    expect([aliased.status, aliased.headers.get(REPLAYED_HEADER), aliased.body._id]).toEqual([
      201,
      'true',
      answers[0]!.body._id,
    ])
  })

  test('a response 400 or 409 is replayed under an Idempotency-Key, but a 401 is not', async () => {
    const { user, path, anonymous, count } = await createThingsFixture()
    const [bad, conflict, unknown] = [createKey(), createKey(), createKey()]
    await user.post(path, { title: 'x', code: 'c' })
    for (const replayed of [null, 'true']) {
      const wrong = await user.post(path, {}, bad)
      expect([...statusAndCode(wrong), wrong.headers.get(REPLAYED_HEADER)]).toEqual([400, 'INVALID_INPUT', replayed])
      const taken = await user.post(path, { title: 'y', code: 'c' }, conflict)
      expect([...statusAndCode(taken), taken.headers.get(REPLAYED_HEADER)]).toEqual([409, 'UNIQUE_VIOLATION', replayed])
      const nobody = await anonymous.post(path, { title: 'x' }, unknown)
      expect([...statusAndCode(nobody), nobody.headers.get(REPLAYED_HEADER)]).toEqual([401, 'UNAUTHENTICATED', null])
    }
    expect(await count()).toBe(1)
  })

  test('an Idempotency-Key expires after 24 hours, and expired keys are deleted', async () => {
    const { user, path, count, storedKeys } = await createThingsFixture()
    const same = createKey()
    await user.post(path, { title: 'x' }, same)
    moveClock(Date.now() + DAY - 60_000)
    expect((await user.post(path, { title: 'x' }, same)).headers.get(REPLAYED_HEADER)).toBe('true')
    moveClock(Date.now() + DAY + 60_000)
    const late = await user.post(path, { title: 'y' }, same)
    expect([late.status, late.headers.get(REPLAYED_HEADER), await count()]).toEqual([201, null, 2])
    for (let n = 0; n < 30; n++) await user.post(path, { title: 'z' }, createKey())
    expect((await storedKeys()).length).toBe(31)
    moveClock(Date.now() + 2 * DAY + 120_000)
    for (let n = 0; n < 3; n++) await user.post(path, { title: 'z' }, createKey())
    expect((await storedKeys()).length).toBe(3)
  })

  test.each(['', 'a b', 'ä', 'x'.repeat(256), 'tab\tbed', '\x7f'])(
    'POST rejects the Idempotency-Key %j with 400 INVALID_INPUT',
    async (bad) => {
      const { user, path, count } = await createThingsFixture()
      expect(statusAndCode(await user.post(path, { title: 'x' }, createKey(bad)))).toEqual([400, 'INVALID_INPUT'])
      expect(await count()).toBe(0)
    },
  )

  test('POST accepts an Idempotency-Key of 1 to 255 visible ASCII characters', async () => {
    const { user, path } = await createThingsFixture()
    for (const good of ['x', '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~', 'x'.repeat(255)]) {
      await user.post(path, { title: 'x' }, createKey(good))
      expect((await user.post(path, { title: 'x' }, createKey(good))).headers.get(REPLAYED_HEADER)).toBe('true')
    }
  })

  test('PUT and GET ignore an Idempotency-Key', async () => {
    const { user, path, storedKeys } = await createThingsFixture()
    const { body } = await user.post(path, { title: 'x' })
    const same = createKey()
    for (const title of ['y', 'z'])
      expect((await user.put(`${path}/${body._id}`, { title }, same)).body.title).toBe(title)
    await user.get(path, same)
    expect(await storedKeys()).toEqual([])
  })

  test('POST /api/blueprints and POST /api/me replay their responses under an Idempotency-Key', async () => {
    const { as, user } = await createThingsFixture()
    const postTwice = async (client: ApiClient, path: string, body: object) => {
      const same = createKey()
      const [first, again] = [await client.post(path, body, same), await client.post(path, body, same)]
      expect([again.status, again.headers.get(REPLAYED_HEADER)], path).toEqual([first.status, 'true'])
      expect(again.body).toEqual(first.body)
      return first.status
    }
    expect(await postTwice(as('admin'), '/blueprints', { key: 'more', name: 'More', fields: [] })).toBe(201)
    expect(await postTwice(user, '/me', { firstName: 'Ada' })).toBe(200)
  })

  test('a repeated POST of an anonymous caller is replayed, but their rejected requests are not stored', async () => {
    const { anonymous, path, count, storedKeys } = await createThingsFixture([
      { operation: 'create', scope: 'tenant', guest: true },
    ])
    const same = createKey()
    for (const replayed of [null, 'true'])
      expect((await anonymous.post(path, { title: 'x' }, same)).headers.get(REPLAYED_HEADER)).toBe(replayed)
    expect((await anonymous.post(path, {}, createKey())).status).toBe(400)
    expect([await count(), (await storedKeys()).length]).toEqual([1, 1])
  })

  test('an Idempotency-Key does not change the responses 401 and 404 to requests that are not admitted', async () => {
    const { origin, path, user } = await createThingsFixture()
    const same = createKey()
    await user.post(path, { title: 'x' }, same)
    const bad = apiClient(origin, { 'x-api-key': `atl_${'0'.repeat(64)}` })
    expect((await bad.post(path, { title: 'x' }, same)).status).toBe(401)
    expect((await apiClient('http://nobody.test').post(path, { title: 'x' }, same)).status).toBe(404)
    expect((await user.post('/nowhere', { title: 'x' }, same)).status).toBe(404)
  })

  test('a repeated POST whose body breaks off gets 400 MALFORMED_BODY', async () => {
    const { user, path, origin, tokens, count } = await createThingsFixture()
    const same = createKey()
    await user.post(path, { title: 'x' }, same)
    const raw = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) })
    const headers = { 'x-api-key': tokens.user, 'content-type': 'application/json', ...same }
    expect(statusAndCode(await callApi('POST', `${origin}/api${path}`, { headers, raw }))).toEqual([
      400,
      'MALFORMED_BODY',
    ])
    expect(await count()).toBe(1)
  })

  test('a POST without an Idempotency-Key stores nothing for a replay', async () => {
    const { user, path, storedKeys } = await createThingsFixture()
    await user.post(path, { title: 'x' })
    expect(await storedKeys()).toEqual([])
  })
})

describe('storage of a response with secrets', () => {
  test('a response with secrets is replayed, and the database contains neither secrets nor an unkeyed hash of the request', async () => {
    const { origin, anonymous, storedKeys } = await createThingsFixture()
    const [same, account] = [createKey(), { username: 'ada-lovelace', password: 'correct-horse', authType: 'oauth' }]
    const first = await anonymous.post('/signup', account, same)
    const again = await anonymous.post('/signup', account, same)
    expect([first.status, again.status, again.headers.get(REPLAYED_HEADER)]).toEqual([201, 201, 'true'])
    const { token, refreshToken } = first.body.payload
    expect(again.body.payload.refreshToken).toBe(refreshToken)
    expect(again.headers.get('cache-control')).toBe('no-store')

    const ada = apiClient(origin, { authorization: `Bearer ${token}` })
    const named = createKey()
    const issued = await ada.post('/me/api-tokens', { nickname: 'n' }, named)
    expect((await ada.post('/me/api-tokens', { nickname: 'n' }, named)).body).toEqual(issued.body)
    expect((await ada.get('/me/api-tokens')).body.length).toBe(1)

    const disk = JSON.stringify(await storedKeys())
    for (const secret of [token, refreshToken, issued.body.token, account.password, account.username])
      expect(disk).not.toContain(secret)
    const base64 = (text: string) => Buffer.from(text).toString('base64').slice(2, -4)
    expect(disk).not.toContain(base64(issued.body.token))
    // A guessed body cannot be confirmed by hashing it.
    const plain = new Bun.CryptoHasher('sha256').update(`\n${JSON.stringify(account)}`).digest('hex')
    expect(disk).not.toContain(plain)
  })
})

describe('replay of a response with secrets', () => {
  const signUp = async (
    { anonymous }: Pick<Awaited<ReturnType<typeof createThingsFixture>>, 'anonymous'>,
    username: string,
  ) => (await anonymous.post('/signup', { username, password: 'correct-horse', authType: 'oauth' })).body.payload

  test('a response with tokens is not replayed to another user who sends the same key and body', async () => {
    const own = await createThingsFixture()
    const [ada, eve] = [await signUp(own, 'ada-lovelace'), await signUp(own, 'eve')]
    const same = createKey()
    const refresh = (token?: string) =>
      own.anonymous.post('/token/refresh', undefined, { ...same, ...(token && { authorization: `Bearer ${token}` }) })
    const first = await refresh(ada.refreshToken)
    expect([first.status, first.body.payload.user.username]).toEqual([200, 'ada-lovelace'])
    const again = await refresh(ada.refreshToken)
    expect([again.headers.get(REPLAYED_HEADER), again.body]).toEqual(['true', first.body])
    const forEve = await refresh(eve.refreshToken)
    expect([forEve.status, forEve.body.payload.user.username]).toEqual([200, 'eve'])
    for (const nobody of [undefined, 'x', ada.token])
      expect(statusAndCode(await refresh(nobody))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('a response that requires a session is not replayed to an API token of the same user, which gets 403 FORBIDDEN', async () => {
    const own = await createThingsFixture()
    const { token } = await signUp(own, 'ada-lovelace')
    const ada = apiClient(own.origin, { authorization: `Bearer ${token}` })
    const issued = await ada.post('/me/api-tokens', { nickname: 'n' }, createKey())
    const program = apiClient(own.origin, { 'x-api-key': issued.body.token })
    const same = createKey()
    expect((await ada.post('/me/api-tokens', { nickname: 'other' }, same)).status).toBe(201)
    expect(statusAndCode(await program.post('/me/api-tokens', { nickname: 'other' }, same))).toEqual([403, 'FORBIDDEN'])
  })

  test('a replayed response contains each Set-Cookie header of the original', async () => {
    const own = await createThingsFixture()
    await signUp(own, 'ada-lovelace')
    const [same, account] = [createKey(), { username: 'ada-lovelace', password: 'correct-horse' }]
    const [first, again] = [
      await own.anonymous.post('/signin', account, same),
      await own.anonymous.post('/signin', account, same),
    ]
    expect([again.headers.get(REPLAYED_HEADER), again.headers.getSetCookie()]).toEqual([
      'true',
      first.headers.getSetCookie(),
    ])
    expect(first.headers.getSetCookie()).toHaveLength(2)
  })
})

describe('a request whose response was lost', () => {
  /** Simulates a process that dies after it has committed the work and before it stores the response. */
  const loseResponse = async (tenant: Tenant, busy = '0', of = 'another process') =>
    tenant.write((tx) => tx.query(`update idempotency_keys set answer = null, busy = ${busy}, attempt = ?`, [of]))

  test('a lost response to a create is rebuilt from the current entity, and the create is not repeated', async () => {
    const { user, path, tenant, count } = await createThingsFixture()
    const same = createKey()
    const first = await user.post(path, { title: 'x' }, same)
    await loseResponse(tenant)
    for (let n = 0; n < 2; n++) {
      const again = await user.post(path, { title: 'x' }, same)
      expect([again.status, again.headers.get(REPLAYED_HEADER), again.body]).toEqual([201, 'rebuilt', first.body])
      expect(again.headers.get('etag')).toBe(first.headers.get('etag'))
    }
    await user.put(`${path}/${first.body._id}`, { title: 'z' })
    expect((await user.post(path, { title: 'x' }, same)).body.title).toBe('z')
    expect(statusAndCode(await user.post(path, { title: 'y' }, same))).toEqual([422, 'IDEMPOTENCY_KEY_REUSED'])
    expect(await count()).toBe(1)
    await user.delete(`${path}/${first.body._id}`)
    expect(statusAndCode(await user.post(path, { title: 'x' }, same))).toEqual([409, 'IDEMPOTENCY_NO_ANSWER'])
    expect(await count()).toBe(0)
  })

  test('a rebuilt response has the form that the query requests', async () => {
    const { user, path, tenant } = await createThingsFixture()
    const same = createKey()
    const first = await user.post(`${path}?$flat=false`, { title: 'x' }, same)
    await loseResponse(tenant)
    const again = await user.post(`${path}?$flat=false`, { title: 'x' }, same)
    expect([again.headers.get(REPLAYED_HEADER), again.body]).toEqual(['rebuilt', first.body])
  })

  test('a lost response to the creation of a blueprint or workspace is rebuilt', async () => {
    const { as, tenant } = await createThingsFixture()
    const cases: [string, object][] = [
      ['/blueprints', { key: 'more', name: 'More', fields: [{ key: 'a', type: 'string' }] }],
      ['/workspaces', { name: 'Office', labels: ['x'] }],
    ]
    for (const [path, body] of cases) {
      const same = createKey()
      const first = await as('admin').post(path, body, same)
      await loseResponse(tenant)
      const again = await as('admin').post(path, body, same)
      expect([again.status, again.headers.get(REPLAYED_HEADER), again.body]).toEqual([201, 'rebuilt', first.body])
    }
  })

  test('a lost response to a batch gets 409 IDEMPOTENCY_NO_ANSWER, and the batch is not repeated', async () => {
    const { user, path, tenant, count } = await createThingsFixture()
    const same = createKey()
    const operations = [{ op: 'create', data: { title: 'x' } }]
    await user.post(`${path}/batch`, { operations }, same)
    await loseResponse(tenant)
    expect(statusAndCode(await user.post(`${path}/batch`, { operations }, same))).toEqual([
      409,
      'IDEMPOTENCY_NO_ANSWER',
    ])
    expect(await count()).toBe(1)
  })

  test('a lost response is not rebuilt for a caller who may not read the entity (409) or has been deleted (401)', async () => {
    const own = await createThingsFixture([{ operation: 'create', scope: 'tenant', roleBased: ['user'] }])
    const [same, token] = [createKey(), createKey()]
    expect((await own.user.post(own.path, { title: 'x' }, same)).status).toBe(201)
    expect((await own.as('other').post(own.path, { title: 'x' }, token)).status).toBe(201)
    await loseResponse(own.tenant)
    expect(statusAndCode(await own.user.post(own.path, { title: 'x' }, same))).toEqual([409, 'IDEMPOTENCY_NO_ANSWER'])
    await own.as('admin').delete(`/users/${own.users.other}`)
    expect(statusAndCode(await own.as('other').post(own.path, { title: 'x' }, token))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('a lost response is rebuilt at once on SQLite, and after the lease on a shared database', async () => {
    const { user, path, tenant, count } = await createThingsFixture()
    const same = createKey()
    await user.post(path, { title: 'x' }, same)
    await loseResponse(tenant, '(select now + 700 from clock)')
    const began = performance.now()
    expect((await user.post(path, { title: 'x' }, same)).headers.get(REPLAYED_HEADER)).toBe('rebuilt')
    if (config.ATOLL_DATABASE_URL) expect(performance.now() - began).toBeGreaterThan(600)
    expect(await count()).toBe(1)
  })

  test('a failed request that wrote nothing leaves its Idempotency-Key usable', async () => {
    const { user, path, tenant, count } = await createThingsFixture()
    const same = createKey()
    const { write } = tenant
    const failing = tenant as { write: unknown }
    failing.write = () => Promise.reject(new Error('disk'))
    try {
      expect((await user.post(path, { title: 'x' }, same)).status).toBe(500)
    } finally {
      failing.write = write
    }
    expect((await user.post(path, { title: 'x' }, same)).status).toBe(201)
    expect(await count()).toBe(1)
  })
})

test('a renewal of the session cookie in a failed request leaves the Idempotency-Key usable', async () => {
  const { anonymous, path, tenant, origin, as, count } = await createThingsFixture(fullAccessRules('tenant', '*'))
  await as('admin').get('/me')
  await anonymous.post('/signup', { username: 'ada-lovelace', password: 'correct-horse' })
  const signedIn = await anonymous.post('/signin', { username: 'ada-lovelace', password: 'correct-horse' })
  const cookie = signedIn.headers.getSetCookie()[0]!.split(';')[0]!
  const ada = apiClient(origin, { cookie })
  moveClock(Date.now() + 3_600_000)
  const same = createKey()
  const { write } = tenant
  let writes = 0
  const failing = tenant as { write: typeof write }
  failing.write = (work) => (++writes === 1 ? write(work) : Promise.reject(new Error('disk')))
  try {
    expect((await ada.post(path, { title: 'x' }, same)).status).toBe(500)
  } finally {
    failing.write = write
  }
  expect(writes).toBeGreaterThan(1)
  expect((await ada.post(path, { title: 'x' }, same)).status).toBe(201)
  expect(await count()).toBe(1)
})

test('the claim of an Idempotency-Key is written in the same transaction as the work', async () => {
  const { user, path, tenant, storedKeys, count } = await createThingsFixture()
  await user.get('/me') // updates `lastUsedAt` of the API token
  const { write } = tenant
  const seen: unknown[] = []
  const wrappedTenant = tenant as { write: typeof write }
  wrappedTenant.write = (work) =>
    write(async (tx) => {
      const result = await work(tx)
      seen.push([
        Number((await tx.query('select count(*) from entities'))[0]![0]),
        (await tx.query('select answer from idempotency_keys')).map(([answer]) => typeof answer),
      ])
      return result
    })
  try {
    await user.post(path, { title: 'x' }, createKey())
  } finally {
    wrappedTenant.write = write
  }
  expect(seen).toEqual([
    [1, ['object']],
    [1, ['string']],
  ])
  expect([(await storedKeys()).length, await count()]).toEqual([1, 1])
})

describe('replay of a stored response', () => {
  const createRoleFixture = async () => {
    const own = await createThingsFixture(fullAccessRules('tenant', 'staff'))
    const admin = own.as('admin')
    const setRoles = async (roles: string[]) =>
      expect((await admin.put(`/users/${own.users.user}`, { roles })).status).toBe(200)
    await setRoles(['user', 'staff'])
    return { ...own, admin, setRoles }
  }

  test('a stored response gets 403 while the caller lacks the role, and is replayed once they have it again', async () => {
    const { user, path, setRoles, count } = await createRoleFixture()
    const same = createKey()
    expect((await user.post(path, { title: 'x' }, same)).status).toBe(201)
    await setRoles(['user'])
    expect(statusAndCode(await user.post(path, { title: 'x' }, same))).toEqual([403, 'FORBIDDEN'])
    await setRoles(['user', 'staff', 'boss'])
    expect((await user.post(path, { title: 'x' }, same)).headers.get(REPLAYED_HEADER)).toBe('true')
    expect(await count()).toBe(1)
  })

  test('a stored response gets 403 FORBIDDEN after the caller has stopped being an admin', async () => {
    const own = await createThingsFixture()
    const body = { username: 'new', roles: ['user'] }
    const [second, same] = [own.as('other'), createKey()]
    await own.as('admin').put(`/users/${own.users.other}`, { roles: ['admin'] })
    expect((await second.post('/users', body, same)).status).toBe(201)
    await own.as('admin').put(`/users/${own.users.other}`, { roles: ['user'] })
    expect(statusAndCode(await second.post('/users', body, same))).toEqual([403, 'FORBIDDEN'])
  })

  test('a stored response gets 401 UNAUTHENTICATED after the API token was deleted', async () => {
    const own = await createThingsFixture()
    const { token } = await issueApiToken(own.tenant, own.users.user, { nickname: 'x' })
    const [program, same] = [apiClient(own.origin, { 'x-api-key': token }), createKey()]
    expect((await program.post(own.path, { title: 'x' }, same)).status).toBe(201)
    await own.tenant.write((tx) => tx.query('delete from api_tokens where nickname = ?', ['x']))
    invalidateActors(own.tenant)
    expect(statusAndCode(await program.post(own.path, { title: 'x' }, same))).toEqual([401, 'UNAUTHENTICATED'])
    expect(await own.count()).toBe(1)
  })

  test('a stored response gets 403 FORBIDDEN after the caller lost their workspace role or the workspace lost its label', async () => {
    const permissions = ['create', 'read'].map((operation) => ({
      ...{ operation, scope: 'workspace', workspaceRoleBased: ['writer'], workspaceLabelsBased: ['pro'] },
    }))
    const own = await createThingsFixture(permissions)
    const { _id } = (await own.as('admin').post('/workspaces', { name: 'Office', labels: ['pro'] })).body
    const [at, same] = [`/workspaces/${_id}`, createKey()]
    const setRole = (role: string) => own.as('admin').put(`${at}/members/${own.users.user}`, { roles: [role] })
    await own.as('admin').post(`${at}/members`, { userId: own.users.user, roles: ['writer'] })
    await own.user.post(`${at}/activate`)
    expect((await own.user.post(own.path, { title: 'x' }, same)).status).toBe(201)
    await setRole('reader')
    expect(statusAndCode(await own.user.post(own.path, { title: 'x' }, same))).toEqual([403, 'FORBIDDEN'])
    await setRole('writer')
    expect((await own.user.post(own.path, { title: 'x' }, same)).status).toBe(201)
    await own.as('admin').put(at, { labels: [] })
    expect(statusAndCode(await own.user.post(own.path, { title: 'x' }, same))).toEqual([403, 'FORBIDDEN'])
    expect(await own.count()).toBe(1)
  })

  test('a repeated execution of a lambda is replayed without running the lambda again', async () => {
    const own = await createThingsFixture()
    const same = createKey()
    const lambda = await own
      .as('admin')
      .post('/lambdas', {
        name: 'count',
        code: "export default (_, { entities }) => entities('things').create({ title: 'x' })",
      })
    const run = () => own.as('admin').post(`/lambdas/${lambda.body._id}/execute`, {}, same)
    expect([(await run()).status, (await run()).headers.get(REPLAYED_HEADER)]).toEqual([200, 'true'])
    expect(await own.count()).toBe(1)
  })
})

test('an Idempotency-Key outside /api stores nothing: a revoked operator token gets no stored answer', async () => {
  config.ATOLL_OPERATOR_TOKEN = 'operator-token-of-this-test'
  try {
    const { id } = await createTestTenant()
    const post = (token: string) =>
      handleRequest(
        new Request(`http://${id}.test/operator/tenants/${id}/suspend`, {
          method: 'POST',
          headers: { host: `${id}.test`, authorization: `Bearer ${token}`, 'idempotency-key': 'once' },
        }),
      )
    expect((await post(config.ATOLL_OPERATOR_TOKEN)).status).toBe(200)
    expect((await post('revoked')).status).toBe(401)
    const resumed = await handleRequest(
      new Request(`http://${id}.test/operator/tenants/${id}/resume`, {
        method: 'POST',
        headers: { host: `${id}.test`, authorization: `Bearer ${config.ATOLL_OPERATOR_TOKEN}` },
      }),
    )
    expect(resumed.status).toBe(200)
    const { db } = await getTenant(id)
    expect(await db.query('select count(*) from idempotency_keys')).toEqual([[0]])
  } finally {
    config.ATOLL_OPERATOR_TOKEN = ''
  }
})
