import { afterEach, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { removeExpired } from '../../src/accounts/sessions'
import { config } from '../../src/config'
import { toIsoString } from '../../src/core/clock'
import { logOutput } from '../../src/core/log'
import { type HousekeepingTask, startHousekeeping } from '../../src/jobs/housekeeping'
import { withLease } from '../../src/jobs/with-lease'
import type { Tenant } from '../../src/tenancy/tenants'
import { advanceClock, DAY, resetClock, signInForTokens } from '../accounts/session-fixtures'
import { apiCaller, createTempFolder, pollUntil, startAtoll } from '../fakes/cli'
import { databaseUrl } from '../storage/engines'
import { createTestTenant } from '../test-tenant'

setDefaultTimeout(30_000)
afterEach(resetClock)

const countRows = async ({ db }: Tenant, table: 'sessions' | 'session_keys') =>
  Number((await db.query(`select count(*) from ${table}`))[0]![0])
const readLease = async ({ db }: Tenant) =>
  (await db.query(`select holder, expires - (select now from clock) from leases where name = 'housekeeping'`))[0] as
    | [string | null, number]
    | undefined

/** A session that ended a day ago, after it was continued this often. */
async function insertEndedSession({ write }: Tenant, user: string, keys: number) {
  const [session, created, expires] = [Bun.randomUUIDv7(), Date.now() - 31 * DAY, Date.now() - DAY]
  await write((tx) =>
    tx.query(
      `insert into sessions (_id, "user", kind, user_agent, address, created, used, expires) values (?, ?, 'oauth', '', '', ?, ?, ?)`,
      [session, user, created, created, expires],
    ),
  )
  const ROWS_PER_WRITE = 4_000
  for (let remaining = keys; remaining > 0; remaining -= ROWS_PER_WRITE) {
    const rows = Array.from({ length: Math.min(remaining, ROWS_PER_WRITE) }, () => [
      crypto.randomUUID(),
      session,
      created,
      expires,
    ])
    await write((tx) =>
      tx.executeMany('insert into session_keys (hash, session, created, expires) values (?, ?, ?, ?)', rows),
    )
  }
}

describe('what has expired', () => {
  test('is removed, and nobody notices: living sessions go on', async () => {
    const home = await createTestTenant()
    await signInForTokens(home, 'user')
    await signInForTokens(home, 'other')
    advanceClock(20 * DAY)
    const living = await signInForTokens(home, 'admin')
    advanceClock(15 * DAY)
    expect(await countRows(home.tenant, 'sessions')).toBe(3)
    expect(await withLease(home.tenant, 'housekeeping', removeExpired)).toMatchObject({ state: 'done' })
    expect([await countRows(home.tenant, 'sessions'), await countRows(home.tenant, 'session_keys')]).toEqual([1, 2])
    expect((await home.stranger.post('/token/refresh', { refreshToken: living.refreshToken })).status).toBe(200)
  })

  test('is removed by the clock that rules read, and not before its time', async () => {
    const home = await createTestTenant()
    await signInForTokens(home, 'user')
    for (const [days, sessions] of [
      [29, 1],
      [2, 0],
    ] as const) {
      advanceClock(days * DAY)
      await withLease(home.tenant, 'housekeeping', removeExpired)
      expect(await countRows(home.tenant, 'sessions')).toBe(sessions)
    }
  })

  test('is removed a slice at a time, between which others write', async () => {
    const { tenant, users, as } = await createTestTenant()
    await insertEndedSession(tenant, users.user, 4_000)
    await insertEndedSession(tenant, users.other, 3)
    let over = false
    const removal = withLease(tenant, 'housekeeping', removeExpired).finally(() => {
      over = true
    })
    expect((await as('user').post('/me', { name: 'Ada' })).status).toBe(200)
    expect(over).toBeFalse()
    expect(await removal).toMatchObject({ state: 'done' })
    expect([await countRows(tenant, 'sessions'), await countRows(tenant, 'session_keys')]).toEqual([0, 0])
  })

  test('is left to the next holder when the lease is lost in between', async () => {
    const { tenant, users } = await createTestTenant()
    await insertEndedSession(tenant, users.user, 2_000)
    const removal = withLease(tenant, 'housekeeping', removeExpired)
    while ((await countRows(tenant, 'session_keys')) === 2_000) await Bun.sleep(1)
    await tenant.write((tx) => tx.query('update leases set token = token + 1'))
    expect(await removal).toEqual({ state: 'lost' })
    expect(await countRows(tenant, 'session_keys')).toBeGreaterThan(0)
    expect(await countRows(tenant, 'sessions')).toBe(1)
  })
})

describe('housekeeping', () => {
  /** Notes whose turn it was, while rounds come every 100 ms, each twice, as if there were two nodes. */
  function startTestHousekeeping(chore: (tenant: string) => Promise<void> = async () => {}, every = 6_000) {
    const turns: string[] = []
    const chores: HousekeepingTask[] = [
      async ({ tenant }) => {
        turns.push(tenant)
        await chore(tenant)
      },
    ]
    const ends = [startHousekeeping(chores, every), startHousekeeping(chores, every)]
    const end = () => {
      for (const one of ends) one()
    }
    return { turns, end, [Symbol.dispose]: end }
  }

  test('is done where somebody lives, once in its time', async () => {
    const [used, unused] = [await createTestTenant(), await createTestTenant()]
    using keeper = startTestHousekeeping()
    for (let n = 0; n < 15; n++) {
      await used.as('user').get('/me')
      await Bun.sleep(50)
    }
    expect(keeper.turns).toEqual([used.id])
    expect(await readLease(unused.tenant)).toBeUndefined()
    expect(await readLease(used.tenant)).toEqual([null, expect.any(Number)])
  })

  test('comes again when its time has passed', async () => {
    const { as } = await createTestTenant()
    using keeper = startTestHousekeeping(undefined, 300)
    const twice = await pollUntil(
      async () => {
        await as('user').get('/me')
        return keeper.turns.length
      },
      (turns) => turns >= 2,
    )
    expect(twice).toBeGreaterThanOrEqual(2)
  })

  test('that fails is told, tried again, and keeps nobody else from theirs', async () => {
    const [one, other] = [await createTestTenant(), await createTestTenant()]
    using errors = spyOn(logOutput, 'write').mockImplementation(() => {})
    using keeper = startTestHousekeeping(async (tenant) => {
      if (tenant === one.id) throw new Error('broken')
    })
    const done = await pollUntil(
      async () => {
        for (const { as } of [one, other]) await as('user').get('/me')
        return keeper.turns.filter((id) => id === one.id).length
      },
      (turns) => turns >= 2,
    )
    expect(done).toBeGreaterThanOrEqual(2)
    expect(keeper.turns.filter((id) => id === other.id)).toHaveLength(1)
    expect(errors.mock.calls.flat().join()).toContain('HOUSEKEEPING_FAILED')
  })

  test('ends when it is told to, and never begins when its time is 0', async () => {
    const { as } = await createTestTenant()
    using ended = startTestHousekeeping()
    using never = startTestHousekeeping(undefined, 0)
    ended.end()
    await as('user').get('/me')
    await Bun.sleep(300)
    expect([...ended.turns, ...never.turns]).toEqual([])
  })
})

describe('a server', () => {
  const at = () => ({
    at: createTempFolder(),
    env: { ATOLL_TENANTS: config.ATOLL_TENANTS, ATOLL_DATABASE_URL: databaseUrl ?? '', ATOLL_HOUSEKEEPING: '1' },
  })

  test('removes what has expired of the tenants that it serves, and of no others', async () => {
    const [{ id, tenant, users }, other] = [await createTestTenant(), await createTestTenant()]
    await insertEndedSession(tenant, users.user, 300)
    await insertEndedSession(other.tenant, other.users.user, 1)
    await using server = await startAtoll(at())
    const left = await pollUntil(
      async () => {
        await apiCaller(server.url, { tenant: id })('GET', '/api/me')
        return countRows(tenant, 'sessions')
      },
      (sessions) => !sessions,
    )
    expect([left, await countRows(tenant, 'session_keys')]).toEqual([0, 0])
    expect(await countRows(other.tenant, 'sessions')).toBe(1)
  })

  test('that is told to stop frees its leases, so that another one goes on at once', async () => {
    const { id, tenant, users } = await createTestTenant()
    await insertEndedSession(tenant, users.user, 40_000)
    await using server = await startAtoll(at())
    await pollUntil(
      async () => {
        await apiCaller(server.url, { tenant: id })('GET', '/api/me')
        return readLease(tenant)
      },
      (found) => !!found?.[0],
    )
    expect(await server.end('SIGTERM')).toBe(0)
    const [holder, left] = (await readLease(tenant))!
    expect([holder, left <= 0]).toEqual([null, true])
    expect(await countRows(tenant, 'session_keys')).toBeGreaterThan(0)
    expect(await withLease(tenant, 'housekeeping', async () => toIsoString(0))).toMatchObject({ state: 'done' })
  })
})
