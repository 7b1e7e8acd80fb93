import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { eq } from 'drizzle-orm'
import { HASH_CONCURRENCY, hashPassword, hashSignupPassword, verifyPassword } from '../../src/accounts/passwords'
import { users } from '../../src/accounts/tables'
import { registerUser } from '../../src/accounts/users/users'
import { config } from '../../src/config'
import { tenantFolder } from '../../src/tenancy/databases'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { signInForCookie, signInForTokens } from './session-fixtures'

const home = await createTestTenant()
const { stranger } = home
const password = 'correct horse'
await stranger.post('/signup', { username: 'ada', password })
const { hash, verify } = Bun.password

/** Looks on whenever a password is hashed or verified, or instead of it. */
const watchHash = (work: typeof hash) => spyOn(Bun.password, 'hash').mockImplementation(work)
const watchVerify = (work: typeof verify) => spyOn(Bun.password, 'verify').mockImplementation(work)

afterEach(() => {
  for (const spy of [spyOn(Bun.password, 'hash'), spyOn(Bun.password, 'verify')]) spy.mockRestore()
})

test('only so many passwords are hashed at once that the others have a core left, however many people come', async () => {
  let [running, most] = [0, 0]
  const counted = async <T>(work: Promise<T>) => {
    most = Math.max(most, ++running)
    try {
      return await work
    } finally {
      running--
    }
  }
  watchHash((...args) => counted(hash(...args)))
  watchVerify((...args) => counted(verify(...args)))
  const answers = await Promise.all(
    [1, 2, 3].flatMap((n) => [
      stranger.post('/signup', { username: `guest ${n}`, password }),
      stranger.post('/signin', { username: 'ada', password }),
    ]),
  )
  expect(answers.map(({ status }) => status)).toEqual([201, 200, 201, 200, 201, 200])
  expect(most).toBe(HASH_CONCURRENCY)
  expect(HASH_CONCURRENCY).toBeWithin(1, Math.max(2, availableParallelism()))
  expect(running).toBe(0)
})

test('others are answered while a password is hashed', async () => {
  let overtaken = false
  watchVerify(async (...args) => {
    let done = false
    const verified = verify(...args).finally(() => {
      done = true
    })
    await home.as('user').get('/me')
    overtaken = !done
    return verified
  })
  expect((await stranger.post('/signin', { username: 'ada', password })).status).toBe(200)
  expect(overtaken).toBe(true)
})

test('whether a user exists cannot be told from how long a refusal takes: the work is the same', async () => {
  const seen: [unknown, string | undefined][] = []
  watchVerify((text, hash, ...more) => {
    seen.push([text, `${hash}`.match(/^\$argon2id\$v=19\$m=\d+,t=\d+,p=\d+\$/)?.[0]])
    return verify(text, hash, ...more)
  })
  // One who has a password, one who has none, and nobody.
  for (const username of ['ada', 'user', 'nobody'])
    expect((await stranger.post('/signin', { username, password: 'wrong horse' })).status).toBe(401)
  expect(seen).toHaveLength(3)
  expect(seen[0]).toEqual(['wrong horse', expect.stringMatching('argon2id')])
  expect(seen[1]).toEqual(seen[0])
  expect(seen[2]).toEqual(seen[0])
})

test('when too many wait for their password to be hashed, the next is asked to come again', async () => {
  const gate = Promise.withResolvers<string>()
  watchHash(() => gate.promise)
  const crowd = Array.from({ length: 1_000 }, () => hashPassword(home.tenant, password))
  const settled = Promise.allSettled(crowd)
  try {
    const answer = await stranger.post('/signin', { username: 'ada', password })
    expect(statusAndCode(answer)).toEqual([503, 'BUSY'])
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  } finally {
    gate.resolve('hash')
  }
  const outcomes = new Set((await settled).map(({ status }) => status))
  expect(outcomes).toEqual(new Set(['fulfilled', 'rejected']))
  expect((await stranger.post('/signin', { username: 'ada', password })).status).toBe(200)
})

test('two who have the same password cannot be told by its hash', async () => {
  await stranger.post('/signup', { username: 'bob', password })
  const rows = await home.tenant.db.select({ username: users.username, password: users.password }).from(users)
  const [ada, bob] = ['ada', 'bob'].map((name) => rows.find(({ username }) => username === name)?.password)
  expect(ada).toStartWith('$argon2id$')
  expect(bob).toStartWith('$argon2id$')
  expect(ada).not.toBe(bob)
})

describe('a password is hashed by argon2id with 19 MiB, two passes and one lane', () => {
  const PARAMETERS = '$argon2id$v=19$m=19456,t=2,p=1$'
  /** Somebody whose password was hashed in another way, and how it is hashed after a sign-in. */
  async function hashedBy(kind: Parameters<typeof hash>[1]) {
    const username = `of ${crypto.randomUUID()}`
    const { _id } = await registerUser(home.tenant, { username })
    const before = await hash(password, kind)
    await home.tenant.write((tx) => tx.update(users).set({ password: before }).where(eq(users._id, _id)))
    const { status } = await stranger.post('/signin', { username, password })
    const row = await home.tenant.db.select().from(users).where(eq(users._id, _id)).get()
    const again = await stranger.post('/signin', { username, password })
    return { before, statuses: [status, again.status], after: row!.password! }
  }

  test('when somebody signs up or chooses another one', async () => {
    const row = await home.tenant.db.select().from(users).where(eq(users.username, 'ada')).get()
    expect(row!.password).toStartWith(PARAMETERS)
  })

  test('and a stronger hash stays valid, as it is', async () => {
    const { before, statuses, after } = await hashedBy({ algorithm: 'argon2id', memoryCost: 65_536, timeCost: 3 })
    expect(before).toStartWith('$argon2id$v=19$m=65536,t=3,p=1$')
    expect([statuses, after]).toEqual([[200, 200], before])
  })

  test.each([
    ['one of ours from before', { algorithm: 'argon2id', memoryCost: 65_536, timeCost: 2 }],
    ['a weaker one', { algorithm: 'argon2id', memoryCost: 4_096, timeCost: 3 }],
    ['one of argon2i', { algorithm: 'argon2i', memoryCost: 65_536, timeCost: 2 }],
    ['one of bcrypt', { algorithm: 'bcrypt', cost: 4 }],
  ] as const)('and %s is replaced at the next sign-in', async (_, kind) => {
    const { before, statuses, after } = await hashedBy(kind)
    expect(before).not.toStartWith(PARAMETERS)
    expect(statuses).toEqual([200, 200])
    expect(after).toStartWith(PARAMETERS)
  })
})

/** All that is kept of a tenant: its files, or the rows of its tables. */
async function dumpTenant({ id, tenant: { db } }: typeof home): Promise<(Buffer | string)[]> {
  const folder = tenantFolder(id)
  if (!config.ATOLL_DATABASE_URL) return readdirSync(folder).map((file) => readFileSync(`${folder}/${file}`))
  const tables = await db.query(
    "select relname from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r'",
  )
  return Promise.all(tables.map(async ([table]) => JSON.stringify(await db.query(`select t::text from "${table}" t`))))
}

test('a stolen database opens no doors: it holds nothing that anybody could sign in with', async () => {
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

test('hashes the password of a sign-in before those of all sign-ups that wait, of its own tenant and of others', async () => {
  const other = await createTestTenant()
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  watchHash(async () => {
    order.push('sign-up')
    await gate.promise
    return 'x'
  })
  const signups = [home, other].flatMap(({ tenant }) =>
    Array.from({ length: 20 }, () => hashSignupPassword(tenant, password)),
  )
  const attempt = async () => void order.push('sign-in')
  const signins = [home, other].map(({ tenant }) => verifyPassword(tenant, password, null, attempt))
  gate.resolve()
  await Promise.all([...signups, ...signins])
  expect(order.slice(0, HASH_CONCURRENCY + 2)).toEqual([
    ...Array(HASH_CONCURRENCY).fill('sign-up'),
    'sign-in',
    'sign-in',
  ])
  expect(order).toHaveLength(42)
})

test('answers a sign-in while a flood of sign-ups at the same tenant is still waiting', async () => {
  const answered: string[] = []
  const note = (what: string) => () => void answered.push(what)
  const signups = Array.from({ length: 60 }, (_, n) =>
    stranger.post('/signup', { username: `flood ${n}`, password }).then(note('sign-up')),
  )
  await Promise.race(signups)
  await stranger.post('/signin', { username: 'ada', password }).then(note('sign-in'))
  await Promise.all(signups)
  expect(answered.length - answered.indexOf('sign-in')).toBeGreaterThan(20)
})
