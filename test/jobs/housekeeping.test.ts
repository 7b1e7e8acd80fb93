import { afterEach, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { removeExpired } from '../../src/accounts/sessions'
import { config } from '../../src/config'
import { iso } from '../../src/core/clock'
import { logOutput } from '../../src/core/log'
import { holding } from '../../src/jobs/holding'
import { type Chore, keepHouse } from '../../src/jobs/housekeeping'
import type { Tenant } from '../../src/tenancy/tenants'
import { backToNow, DAY, later, pairOf } from '../accounts/people'
import { house } from '../house'
import { caller, emptyFolder, serve, within5s } from '../outside/program'
import { databaseUrl } from '../storage/engines'

setDefaultTimeout(30_000)
afterEach(backToNow)

const count = async ({ db }: Tenant, table: 'sessions' | 'session_keys') =>
  Number((await db.ask(`select count(*) from ${table}`))[0]![0])
const lease = async ({ db }: Tenant) =>
  (await db.ask(`select holder, expires - (select now from clock) from leases where name = 'housekeeping'`))[0] as
    | [string | null, number]
    | undefined

/** A session that ended a day ago, after it was continued this often. */
async function ended({ write }: Tenant, user: string, keys: number) {
  const [session, created, expires] = [Bun.randomUUIDv7(), Date.now() - 31 * DAY, Date.now() - DAY]
  await write((tx) =>
    tx.ask(
      `insert into sessions (_id, "user", kind, user_agent, address, created, used, expires) values (?, ?, 'oauth', '', '', ?, ?, ?)`,
      [session, user, created, created, expires],
    ),
  )
  const AT_ONCE = 4_000
  for (let left = keys; left > 0; left -= AT_ONCE) {
    const rows = Array.from({ length: Math.min(left, AT_ONCE) }, () => [crypto.randomUUID(), session, created, expires])
    await write((tx) => tx.each('insert into session_keys (hash, session, created, expires) values (?, ?, ?, ?)', rows))
  }
}

describe('what has expired', () => {
  test('is removed, and nobody notices: living sessions go on', async () => {
    const home = await house()
    await pairOf(home, 'user')
    await pairOf(home, 'other')
    later(20 * DAY)
    const living = await pairOf(home, 'admin')
    later(15 * DAY)
    expect(await count(home.tenant, 'sessions')).toBe(3)
    expect(await holding(home.tenant, 'housekeeping', removeExpired)).toMatchObject({ state: 'done' })
    expect([await count(home.tenant, 'sessions'), await count(home.tenant, 'session_keys')]).toEqual([1, 2])
    expect((await home.stranger.post('/token/refresh', { refreshToken: living.refreshToken })).status).toBe(200)
  })

  test('is removed by the clock that rules read, and not before its time', async () => {
    const home = await house()
    await pairOf(home, 'user')
    for (const [days, sessions] of [
      [29, 1],
      [2, 0],
    ] as const) {
      later(days * DAY)
      await holding(home.tenant, 'housekeeping', removeExpired)
      expect(await count(home.tenant, 'sessions')).toBe(sessions)
    }
  })

  test('is removed a slice at a time, between which others write', async () => {
    const { tenant, users, as } = await house()
    await ended(tenant, users.user, 4_000)
    await ended(tenant, users.other, 3)
    let over = false
    const removal = holding(tenant, 'housekeeping', removeExpired).finally(() => {
      over = true
    })
    expect((await as('user').post('/me', { name: 'Ada' })).status).toBe(200)
    expect(over).toBeFalse()
    expect(await removal).toMatchObject({ state: 'done' })
    expect([await count(tenant, 'sessions'), await count(tenant, 'session_keys')]).toEqual([0, 0])
  })

  test('is left to the next holder when the lease is lost in between', async () => {
    const { tenant, users } = await house()
    await ended(tenant, users.user, 2_000)
    const removal = holding(tenant, 'housekeeping', removeExpired)
    while ((await count(tenant, 'session_keys')) === 2_000) await Bun.sleep(1)
    await tenant.write((tx) => tx.ask('update leases set token = token + 1'))
    expect(await removal).toEqual({ state: 'lost' })
    expect(await count(tenant, 'session_keys')).toBeGreaterThan(0)
    expect(await count(tenant, 'sessions')).toBe(1)
  })
})

describe('housekeeping', () => {
  /** Notes whose turn it was, while rounds come every 100 ms, each twice, as if there were two nodes. */
  function keeping(chore: (tenant: string) => Promise<void> = async () => {}, every = 6_000) {
    const turns: string[] = []
    const chores: Chore[] = [
      async ({ tenant }) => {
        turns.push(tenant)
        await chore(tenant)
      },
    ]
    const ends = [keepHouse(chores, every), keepHouse(chores, every)]
    const end = () => {
      for (const one of ends) one()
    }
    return { turns, end, [Symbol.dispose]: end }
  }

  test('is done where somebody lives, once in its time', async () => {
    const [used, unused] = [await house(), await house()]
    using keeper = keeping()
    for (let n = 0; n < 15; n++) {
      await used.as('user').get('/me')
      await Bun.sleep(50)
    }
    expect(keeper.turns).toEqual([used.id])
    expect(await lease(unused.tenant)).toBeUndefined()
    expect(await lease(used.tenant)).toEqual([null, expect.any(Number)])
  })

  test('comes again when its time has passed', async () => {
    const { as } = await house()
    using keeper = keeping(undefined, 300)
    const twice = await within5s(
      async () => {
        await as('user').get('/me')
        return keeper.turns.length
      },
      (turns) => turns >= 2,
    )
    expect(twice).toBeGreaterThanOrEqual(2)
  })

  test('that fails is told, tried again, and keeps nobody else from theirs', async () => {
    const [one, other] = [await house(), await house()]
    using errors = spyOn(logOutput, 'write').mockImplementation(() => {})
    using keeper = keeping(async (tenant) => {
      if (tenant === one.id) throw new Error('broken')
    })
    const done = await within5s(
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
    const { as } = await house()
    using ended = keeping()
    using never = keeping(undefined, 0)
    ended.end()
    await as('user').get('/me')
    await Bun.sleep(300)
    expect([...ended.turns, ...never.turns]).toEqual([])
  })
})

describe('a server', () => {
  const at = () => ({
    at: emptyFolder(),
    env: { ATOLL_TENANTS: config.ATOLL_TENANTS, ATOLL_DATABASE_URL: databaseUrl ?? '', ATOLL_HOUSEKEEPING: '1' },
  })

  test('removes what has expired of the tenants that it serves, and of no others', async () => {
    const [{ id, tenant, users }, other] = [await house(), await house()]
    await ended(tenant, users.user, 300)
    await ended(other.tenant, other.users.user, 1)
    await using server = await serve(at())
    const left = await within5s(
      async () => {
        await caller(server.url, { tenant: id })('GET', '/api/me')
        return count(tenant, 'sessions')
      },
      (sessions) => !sessions,
    )
    expect([left, await count(tenant, 'session_keys')]).toEqual([0, 0])
    expect(await count(other.tenant, 'sessions')).toBe(1)
  })

  test('that is told to stop frees its leases, so that another one goes on at once', async () => {
    const { id, tenant, users } = await house()
    await ended(tenant, users.user, 40_000)
    await using server = await serve(at())
    await within5s(
      async () => {
        await caller(server.url, { tenant: id })('GET', '/api/me')
        return lease(tenant)
      },
      (found) => !!found?.[0],
    )
    expect(await server.end('SIGTERM')).toBe(0)
    const [holder, left] = (await lease(tenant))!
    expect([holder, left <= 0]).toEqual([null, true])
    expect(await count(tenant, 'session_keys')).toBeGreaterThan(0)
    expect(await holding(tenant, 'housekeeping', async () => iso(0))).toMatchObject({ state: 'done' })
  })
})
