import { afterEach, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { removeExpired } from '../../src/accounts/sessions'
import { config } from '../../src/config'
import { toIsoString } from '../../src/core/clock'
import { logOutput } from '../../src/core/log'
import { Housekeeping, type HousekeepingTask } from '../../src/jobs/housekeeping'
import { withLease } from '../../src/jobs/with-lease'
import type { Tenant } from '../../src/tenancy/tenants'
import { advanceClock, DAY, resetClock, signInForTokens } from '../accounts/session-fixtures'
import { apiCaller, createTempFolder, startAtoll } from '../fakes/cli'
import { databaseUrl } from '../storage/engines'
import { createTestTenant } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(30_000)
afterEach(resetClock)

const countRows = async ({ db }: Tenant, table: 'sessions' | 'session_keys') =>
  Number((await db.query(`select count(*) from ${table}`))[0]![0])
const readLease = async ({ db }: Tenant) =>
  (await db.query(`select holder, expires - (select now from clock) from leases where name = 'housekeeping'`))[0] as
    | [string | null, number]
    | undefined

/** Inserts a session that expired a day ago, with the given number of keys. */
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

describe('removeExpired', () => {
  test('removeExpired removes expired sessions, and live sessions can still be refreshed', async () => {
    const t = await createTestTenant()
    await signInForTokens(t, 'user')
    await signInForTokens(t, 'other')
    advanceClock(20 * DAY)
    const live = await signInForTokens(t, 'admin')
    advanceClock(15 * DAY)
    expect(await countRows(t.tenant, 'sessions')).toBe(3)
    expect(await withLease(t.tenant, 'housekeeping', removeExpired)).toMatchObject({ state: 'done' })
    expect([await countRows(t.tenant, 'sessions'), await countRows(t.tenant, 'session_keys')]).toEqual([1, 2])
    expect((await t.anonymous.post('/token/refresh', { refreshToken: live.refreshToken })).status).toBe(200)
  })

  test('removeExpired removes a session by the movable clock and not before it expires', async () => {
    const t = await createTestTenant()
    await signInForTokens(t, 'user')
    for (const [days, sessions] of [
      [29, 1],
      [2, 0],
    ] as const) {
      advanceClock(days * DAY)
      await withLease(t.tenant, 'housekeeping', removeExpired)
      expect(await countRows(t.tenant, 'sessions')).toBe(sessions)
    }
  })

  test('removeExpired removes sessions in slices, and other writes succeed in between', async () => {
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

  test('removeExpired stops when its lease is lost and leaves the rest to the next holder', async () => {
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

describe('Housekeeping', () => {
  /** Starts housekeeping twice, as on two nodes, and records the tenants of all runs. */
  function startTestHousekeeping(task: (tenant: string) => Promise<void> = async () => {}, every = 6_000) {
    const runs: string[] = []
    const lastRuns: string[] = []
    const tasks = new Map<string, HousekeepingTask>([
      [
        'first',
        async ({ tenant }) => {
          runs.push(tenant)
          await task(tenant)
        },
      ],
      ['last', async ({ tenant }) => void lastRuns.push(tenant)],
    ])
    const nodes = [new Housekeeping(tasks, every).start(), new Housekeeping(tasks, every).start()]
    const end = () => {
      for (const node of nodes) node.stop()
    }
    return { runs, lastRuns, end, [Symbol.dispose]: end }
  }

  test('housekeeping runs once per interval for a tenant in use and never for an unused one', async () => {
    const [used, unused] = [await createTestTenant(), await createTestTenant()]
    using housekeeping = startTestHousekeeping()
    for (let n = 0; n < 15; n++) {
      await used.as('user').get('/me')
      await Bun.sleep(50)
    }
    expect(housekeeping.runs).toEqual([used.id])
    expect(await readLease(unused.tenant)).toBeUndefined()
    expect(await readLease(used.tenant)).toEqual([null, expect.any(Number)])
  })

  test('housekeeping runs again when its interval has passed', async () => {
    const { as } = await createTestTenant()
    using housekeeping = startTestHousekeeping(undefined, 300)
    const runCount = await waitUntil(
      async () => {
        await as('user').get('/me')
        return housekeeping.runs.length
      },
      (runs) => runs >= 2,
    )
    expect(runCount).toBeGreaterThanOrEqual(2)
  })

  test('housekeeping that fails for one tenant is logged and retried, and other tenants get theirs', async () => {
    const [one, other] = [await createTestTenant(), await createTestTenant()]
    using errors = spyOn(logOutput, 'write').mockImplementation(() => {})
    using housekeeping = startTestHousekeeping(async (tenant) => {
      if (tenant === one.id) throw new Error('broken')
    })
    const runsOf = (id: string) => housekeeping.runs.filter((each) => each === id).length
    await waitUntil(async () => {
      for (const { as } of [one, other]) await as('user').get('/me')
      return runsOf(one.id) >= 2 && runsOf(other.id) >= 1
    })
    expect(runsOf(other.id)).toBe(1)
    expect(errors.mock.calls.flat().join()).toContain('HOUSEKEEPING_FAILED')
    expect(errors.mock.calls.flat().join()).toContain('"task":"first"')
    expect(housekeeping.lastRuns).toContain(one.id)
  })

  test('a tenant gets housekeeping while that of other tenants takes long', async () => {
    // One more than there are nodes.
    const tenants = [await createTestTenant(), await createTestTenant(), await createTestTenant()]
    const held = Promise.withResolvers<void>()
    using housekeeping = startTestHousekeeping(() => held.promise)
    await waitUntil(
      async () => {
        for (const { as } of tenants) await as('user').get('/me')
        return housekeeping.runs
      },
      (runs) => tenants.every(({ id }) => runs.includes(id)),
    )
    expect(housekeeping.lastRuns).toEqual([])
    held.resolve()
    await waitUntil(() => housekeeping.lastRuns.length === tenants.length)
  })

  test('housekeeping does not run after it was stopped, nor with an interval of 0', async () => {
    const { as } = await createTestTenant()
    using ended = startTestHousekeeping()
    using never = startTestHousekeeping(undefined, 0)
    ended.end()
    await as('user').get('/me')
    await Bun.sleep(300)
    expect([...ended.runs, ...never.runs]).toEqual([])
  })
})

describe('housekeeping of a server', () => {
  const runOptions = () => ({
    at: createTempFolder(),
    env: { ATOLL_TENANTS: config.ATOLL_TENANTS, ATOLL_DATABASE_URL: databaseUrl ?? '', ATOLL_HOUSEKEEPING: '1' },
  })

  test('a server removes the expired sessions of the tenants that it serves, and of no others', async () => {
    const [{ id, tenant, users }, other] = [await createTestTenant(), await createTestTenant()]
    await insertEndedSession(tenant, users.user, 300)
    await insertEndedSession(other.tenant, other.users.user, 1)
    await using server = await startAtoll(runOptions())
    const left = await waitUntil(
      async () => {
        await apiCaller(server.url, { tenant: id })('GET', '/api/me')
        return countRows(tenant, 'sessions')
      },
      (sessions) => !sessions,
    )
    expect([left, await countRows(tenant, 'session_keys')]).toEqual([0, 0])
    expect(await countRows(other.tenant, 'sessions')).toBe(1)
  })

  test('a server that gets SIGTERM releases its leases, so that another process can take them at once', async () => {
    const { id, tenant, users } = await createTestTenant()
    await insertEndedSession(tenant, users.user, 40_000)
    await using server = await startAtoll(runOptions())
    await waitUntil(
      async () => {
        await apiCaller(server.url, { tenant: id })('GET', '/api/me')
        return readLease(tenant)
      },
      (lease) => !!lease?.[0],
    )
    expect(await server.end('SIGTERM')).toBe(0)
    const [holder, left] = (await readLease(tenant))!
    expect([holder, left <= 0]).toEqual([null, true])
    expect(await countRows(tenant, 'session_keys')).toBeGreaterThan(0)
    expect(await withLease(tenant, 'housekeeping', async () => toIsoString(0))).toMatchObject({ state: 'done' })
  })
})
