import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { eq } from 'drizzle-orm'
import { HASH_CONCURRENCY, hashPassword, hashSignupPassword, verifyPassword } from '../../src/accounts/passwords'
import { users } from '../../src/accounts/tables'
import { registerUser } from '../../src/accounts/users/users'
import { toWorkOwner } from '../../src/accounts/work-owner'
import { config } from '../../src/config'
import { FairShare } from '../../src/core/fair-share'
import { tenantFolder } from '../../src/tenancy/databases'
import { useStandardPasswordCost } from '../password-cost'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { waitUntil } from '../wait-until'
import { signInForCookie, signInForTokens } from './session-fixtures'

useStandardPasswordCost()
const home = await createTestTenant()
const { anonymous } = home
const password = 'correct horse'
await anonymous.post('/signup', { username: 'ada', password })
const { hash, verify } = Bun.password

/** Replaces the hashing or the verification of passwords. */
const watchHash = (work: typeof hash) => spyOn(Bun.password, 'hash').mockImplementation(work)
const watchVerify = (work: typeof verify) => spyOn(Bun.password, 'verify').mockImplementation(work)

afterEach(() => {
  for (const spy of [spyOn(Bun.password, 'hash'), spyOn(Bun.password, 'verify')]) spy.mockRestore()
  spyOn(FairShare.prototype, 'run').mockRestore()
})

test('password hashing runs at most HASH_CONCURRENCY hashes at once and leaves a core free', async () => {
  let [running, maxRunning] = [0, 0]
  const countRunning = async <T>(work: Promise<T>) => {
    maxRunning = Math.max(maxRunning, ++running)
    try {
      return await work
    } finally {
      running--
    }
  }
  watchHash((...args) => countRunning(hash(...args)))
  watchVerify((...args) => countRunning(verify(...args)))
  const answers = await Promise.all(
    [1, 2, 3].flatMap((n) => [
      anonymous.post('/signup', { username: `guest ${n}`, password }),
      anonymous.post('/signin', { username: 'ada', password }),
    ]),
  )
  expect(answers.map(({ status }) => status)).toEqual([201, 200, 201, 200, 201, 200])
  expect(maxRunning).toBe(HASH_CONCURRENCY)
  expect(HASH_CONCURRENCY).toBeWithin(1, Math.max(2, availableParallelism()))
  expect(running).toBe(0)
})

test('other requests are answered while a password is hashed', async () => {
  let overtaken = false
  watchVerify(async (...args) => {
    let done = false
    const verified = verify(...args).finally(() => {
      done = true
    })
    await home.as('user').get('/me')
    overtaken ||= !done
    return verified
  })
  // A busy machine may hash faster than it answers, but not each time.
  for (let attempt = 0; attempt < 10 && !overtaken; attempt++)
    expect((await anonymous.post('/signin', { username: 'ada', password })).status).toBe(200)
  expect(overtaken).toBe(true)
})

test('a failed sign-in verifies one hash of the same cost for a user with a password, one without, and an unknown one', async () => {
  const seen: [unknown, string | undefined][] = []
  watchVerify((text, hash, ...more) => {
    seen.push([text, `${hash}`.match(/^\$argon2id\$v=19\$m=\d+,t=\d+,p=\d+\$/)?.[0]])
    return verify(text, hash, ...more)
  })
  // A user with a password, one without, and an unknown one.
  for (const username of ['ada', 'user', 'nobody'])
    expect((await anonymous.post('/signin', { username, password: 'wrong horse' })).status).toBe(401)
  expect(seen).toHaveLength(3)
  expect(seen[0]).toEqual(['wrong horse', expect.stringMatching('argon2id')])
  expect(seen[1]).toEqual(seen[0])
  expect(seen[2]).toEqual(seen[0])
})

test('a sign-in gets 503 BUSY with retry-after while a thousand passwords of its network are waiting to be hashed', async () => {
  const gate = Promise.withResolvers<string>()
  watchHash(() => gate.promise)
  const owner = toWorkOwner(home.tenant, new Request(home.origin))
  const crowd = Array.from({ length: 1_000 }, () => hashPassword(owner, password))
  const settled = Promise.allSettled(crowd)
  try {
    const answer = await anonymous.post('/signin', { username: 'ada', password })
    expect(statusAndCode(answer)).toEqual([503, 'BUSY'])
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  } finally {
    gate.resolve('hash')
  }
  const outcomes = new Set((await settled).map(({ status }) => status))
  expect(outcomes).toEqual(new Set(['fulfilled', 'rejected']))
  expect((await anonymous.post('/signin', { username: 'ada', password })).status).toBe(200)
})

test('two users with the same password have different hashes', async () => {
  await anonymous.post('/signup', { username: 'bob', password })
  const rows = await home.tenant.db.select({ username: users.username, password: users.password }).from(users)
  const [ada, bob] = ['ada', 'bob'].map((name) => rows.find(({ username }) => username === name)?.password)
  expect(ada).toStartWith('$argon2id$')
  expect(bob).toStartWith('$argon2id$')
  expect(ada).not.toBe(bob)
})

describe('password hashes', () => {
  const PARAMETERS = '$argon2id$v=19$m=19456,t=2,p=1$'
  /** Signs in a user whose password has this kind of hash, and returns the hash before and after. */
  async function signInWithHash(kind: Parameters<typeof hash>[1]) {
    const username = `of ${crypto.randomUUID()}`
    const { _id } = await registerUser(home.tenant, { username })
    const before = await hash(password, kind)
    await home.tenant.write((tx) => tx.update(users).set({ password: before }).where(eq(users._id, _id)))
    const { status } = await anonymous.post('/signin', { username, password })
    const row = await home.tenant.db.select().from(users).where(eq(users._id, _id)).get()
    const again = await anonymous.post('/signin', { username, password })
    return { before, statuses: [status, again.status], after: row!.password! }
  }

  test('a new password is hashed by argon2id with 19 MiB, two passes and one lane', async () => {
    const row = await home.tenant.db.select().from(users).where(eq(users.username, 'ada')).get()
    expect(row!.password).toStartWith(PARAMETERS)
  })

  test('a stronger hash stays unchanged at a sign-in', async () => {
    const { before, statuses, after } = await signInWithHash({ algorithm: 'argon2id', memoryCost: 65_536, timeCost: 3 })
    expect(before).toStartWith('$argon2id$v=19$m=65536,t=3,p=1$')
    expect([statuses, after]).toEqual([[200, 200], before])
  })

  test.each([
    ['argon2id with 64 MiB and two passes', { algorithm: 'argon2id', memoryCost: 65_536, timeCost: 2 }],
    ['argon2id with 4 MiB and three passes', { algorithm: 'argon2id', memoryCost: 4_096, timeCost: 3 }],
    ['argon2i', { algorithm: 'argon2i', memoryCost: 65_536, timeCost: 2 }],
    ['bcrypt', { algorithm: 'bcrypt', cost: 4 }],
  ] as const)('a hash of %s is replaced at the next sign-in', async (_, kind) => {
    const { before, statuses, after } = await signInWithHash(kind)
    expect(before).not.toStartWith(PARAMETERS)
    expect(statuses).toEqual([200, 200])
    expect(after).toStartWith(PARAMETERS)
  })
})

/** Returns everything stored of a tenant: its files, or the rows of its tables. */
async function dumpTenant({ id, tenant: { db } }: typeof home): Promise<(Buffer | string)[]> {
  const folder = tenantFolder(id)
  if (!config.ATOLL_DATABASE_URL) return readdirSync(folder).map((file) => readFileSync(`${folder}/${file}`))
  const tables = await db.query(
    "select relname from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r'",
  )
  return Promise.all(tables.map(async ([table]) => JSON.stringify(await db.query(`select t::text from "${table}" t`))))
}

test('the database contains no passwords, tokens or cookies in plain text', async () => {
  const { token, refreshToken } = await signInForTokens(home, 'user')
  const value = (await signInForCookie(home, 'user')).cookie.split('=')[1] ?? ''
  const everything = await dumpTenant(home)
  const holds = (text: string) => everything.some((bytes) => bytes.includes(text))
  expect(holds('ada')).toBe(true)
  for (const secret of [password, token, refreshToken, value, home.tokens.user]) {
    expect(secret.length).toBeGreaterThan(10)
    expect(holds(secret)).toBe(false)
  }
})

test('the password of a sign-in is hashed before those of waiting sign-ups, at its own and at other tenants', async () => {
  const otherTenant = await createTestTenant()
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  watchHash(async () => {
    order.push('sign-up')
    await gate.promise
    return 'x'
  })
  const signups = [home, otherTenant].flatMap(({ tenant }) =>
    Array.from({ length: 20 }, () => hashSignupPassword(toWorkOwner(tenant), password)),
  )
  const attempt = async () => void order.push('sign-in')
  const signins = [home, otherTenant].map(({ tenant }) => verifyPassword(toWorkOwner(tenant), password, null, attempt))
  gate.resolve()
  await Promise.all([...signups, ...signins])
  expect(order.slice(0, HASH_CONCURRENCY + 2)).toEqual([
    ...Array(HASH_CONCURRENCY).fill('sign-up'),
    'sign-in',
    'sign-in',
  ])
  expect(order).toHaveLength(42)
})

test('POST /api/signin verifies its password before those of POST /api/signup and of other sign-ups that wait', async () => {
  const [first, verified] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const order: string[] = []
  watchHash(async (...args) => {
    // One turn becomes free, and the others only after the sign-in had it.
    const isFirst = order.push('sign-up') === 1
    await (isFirst ? first : verified).promise
    return hash(...args)
  })
  watchVerify((...args) => {
    order.push('sign-in')
    verified.resolve()
    return verify(...args)
  })
  const runs = spyOn(FairShare.prototype, 'run')
  const countQueued = (share: unknown, isLowPriority: boolean) =>
    runs.mock.calls.filter(
      ([, , options], n) => runs.mock.contexts[n] === share && !!options?.isLowPriority === isLowPriority,
    ).length
  try {
    const others = Array.from({ length: 30 }, () => hashSignupPassword(toWorkOwner(home.tenant), password))
    const [hashShare] = runs.mock.contexts
    const signup = anonymous.post('/signup', { username: 'grace', password })
    await waitUntil(() => countQueued(hashShare, true) > others.length)
    const signin = anonymous.post('/signin', { username: 'ada', password })
    await waitUntil(() => countQueued(hashShare, false) > 0)
    first.resolve()
    expect([(await signin).status, (await signup).status]).toEqual([200, 201])
    await Promise.all(others)
    expect(order.indexOf('sign-in')).toBe(HASH_CONCURRENCY)
    expect(order).toHaveLength(32)
  } finally {
    first.resolve()
    verified.resolve()
  }
})
