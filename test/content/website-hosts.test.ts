import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { update } from '../../src/content/configurations'
import { reconcileHosts } from '../../src/content/website-hosts'
import { housekeepingTasks } from '../../src/jobs/housekeeping'
import { withLease } from '../../src/jobs/with-lease'
import { configurations } from '../../src/platform/settings/tables'
import { claimWebsites, findClaimedHosts } from '../../src/tenancy/hosts'
import { createTenant, deleteTenant, getTenant, getTenantInfo, setHosts } from '../../src/tenancy/tenants'
import { apiCaller, createTempFolder, createTenantByCli, pollUntil, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'

setDefaultTimeout(30_000)

beforeAll(() => {
  config.ATOLL_HOST_CLAIMS = 'open'
})
afterAll(() => {
  config.ATOLL_HOST_CLAIMS = 'off'
})

const APP_PATH = '/configurations/app-configuration'
type TestTenant = Awaited<ReturnType<typeof createTestTenant>>

const freshHost = () => `w${crypto.randomUUID()}.example`
const setWebsites = (home: TestTenant, ...websiteUrls: string[]) => home.as('admin').put(APP_PATH, { websiteUrls })
const listHosts = async ({ id }: TestTenant) => (await getTenantInfo(id)).hosts
const listWebsites = async (home: TestTenant) => (await home.stranger.get(APP_PATH)).body.metadata.websiteUrls
/** Which tenant answers at a host. */
const answersAt = async (host: string, home: TestTenant) => {
  const { status } = await callApi('GET', `http://${host}/api/me`, { headers: { 'x-api-key': home.tokens.user } })
  return status === 200
}

describe('the websites of a tenant', () => {
  test('have it answer at their hosts, for as long as it names them', async () => {
    const home = await createTestTenant()
    const [one, two] = [freshHost(), freshHost()]
    expect(await answersAt(one, home)).toBeFalse()
    expect(
      (await setWebsites(home, `https://${one}/`, `http://${two}:8080/shop?x=1`, `https://${one.toUpperCase()}`))
        .status,
    ).toBe(200)
    expect([await answersAt(one, home), await answersAt(`${two}:80`, home)]).toEqual([true, true])
    expect((await listHosts(home)).sort()).toEqual([`${home.id}.test`, one, two].sort())
    expect((await setWebsites(home, `https://${two}`)).status).toBe(200)
    expect([await answersAt(one, home), await answersAt(two, home)]).toEqual([false, true])
    // Other keys have nothing to do with it.
    await home.as('admin').put(APP_PATH, { logo: 'x' })
    expect(await answersAt(two, home)).toBeTrue()
    await home.as('admin').put(APP_PATH, { websiteUrls: null })
    expect(await answersAt(two, home)).toBeFalse()
    expect(await listHosts(home)).toEqual([`${home.id}.test`])
  })

  test('are none of another tenant’s: then nothing is changed', async () => {
    const [one, other] = [await createTestTenant(), await createTestTenant()]
    const [own, wanted, free] = [freshHost(), freshHost(), freshHost()]
    await setWebsites(one, `https://${wanted}`)
    await setWebsites(other, `https://${own}`)
    // Neither are their names in full, with a dot at the end.
    for (const full of [`${wanted}.`, `${one.id}.test.`]) {
      expect(statusAndCode(await setWebsites(other, `https://${full}`))).toEqual([409, 'HOST_TAKEN'])
      expect(await answersAt(`${full}:80`, one)).toBeTrue()
    }
    for (const taken of [wanted, `${one.id}.test`]) {
      const answer = await other
        .as('admin')
        .put(APP_PATH, { websiteUrls: [`https://${free}`, `https://${taken}`], logo: 'x' })
      expect([...statusAndCode(answer), answer.body.details]).toEqual([409, 'HOST_TAKEN', { hosts: [taken] }])
    }
    expect((await other.stranger.get(APP_PATH)).body).toEqual({
      metadata: { websiteUrls: [`https://${own}`] },
      hosts: [{ host: own, state: 'served' }],
    })
    expect((await listHosts(other)).sort()).toEqual([`${other.id}.test`, own].sort())
    expect([await answersAt(wanted, one), await answersAt(free, other)]).toEqual([true, false])
    // What is given back can be had.
    await setWebsites(one)
    expect((await setWebsites(other, `https://${wanted}`)).status).toBe(200)
    expect(await answersAt(wanted, other)).toBeTrue()
  })

  test('go to one when several tenants want them at once', async () => {
    const homes = await Promise.all([1, 2, 3].map(() => createTestTenant()))
    const host = freshHost()
    const answers = await Promise.all(homes.map((home) => setWebsites(home, `https://${host}`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    const winner = homes[answers.findIndex(({ status }) => status === 200)]!
    expect(await answersAt(host, winner)).toBeTrue()
  })

  test('may be on anybody’s own machine, where no tenant answers for it', async () => {
    const [one, other] = [await createTestTenant(), await createTestTenant()]
    const urls = ['http://localhost:5173', 'http://127.0.0.1:8080', 'http://[::1]:3000', 'http://app.localhost']
    for (const home of [one, other]) {
      expect((await setWebsites(home, ...urls)).status).toBe(200)
      expect(await listHosts(home)).toEqual([`${home.id}.test`])
    }
  })

  test('agree with the hosts however many are written at once', async () => {
    const home = await createTestTenant()
    const names = Array.from({ length: 6 }, freshHost)
    const answers = await Promise.all(names.map((host) => setWebsites(home, `https://${host}`)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const [url] = await listWebsites(home)
    expect((await listHosts(home)).sort()).toEqual([`${home.id}.test`, new URL(url).hostname].sort())
    const host = freshHost()
    await Promise.all([
      setWebsites(home),
      setWebsites(home, `https://${host}`),
      setWebsites(home, `https://${host}`),
      setWebsites(home),
    ])
    const left = (await listWebsites(home)).map((one: string) => new URL(one).hostname)
    expect((await listHosts(home)).sort()).toEqual([`${home.id}.test`, ...left].sort())
  })
})

describe('hosts that the command line gives', () => {
  test('stay when a website leaves, and a website’s when the command line takes its own', async () => {
    const home = await createTestTenant()
    const [first, given, both, own] = [`${home.id}.test`, freshHost(), freshHost(), freshHost()]
    await setHosts(home.id, [first, given, both])
    await setWebsites(home, `https://${both}`, `https://${own}`)
    expect((await listHosts(home)).sort()).toEqual([first, given, both, own].sort())
    await setHosts(home.id, [first])
    expect((await listHosts(home)).sort()).toEqual([first, both, own].sort())
    await setHosts(home.id, [first, given, both])
    await setWebsites(home)
    expect((await listHosts(home)).sort()).toEqual([first, given, both].sort())
    await setHosts(home.id, [])
    expect(await listHosts(home)).toEqual([])
  })

  test('are taken from a website of another tenant, which does not get them back', async () => {
    const [one, other] = [await createTestTenant(), await createTestTenant()]
    const host = freshHost()
    await setWebsites(one, `https://${host}`)
    await setHosts(other.id, [host])
    expect([await answersAt(host, one), await answersAt(host, other)]).toEqual([false, true])
    await reconcileHosts(await getTenant(one.id))
    expect(await answersAt(host, other)).toBeTrue()
    expect(statusAndCode(await setWebsites(one, `https://${host}`))).toEqual([409, 'HOST_TAKEN'])
    expect((await setWebsites(one, `https://${freshHost()}`)).status).toBe(200)
    const fresh = freshHost()
    await setWebsites(one, `https://${fresh}`)
    const id = `w${crypto.randomUUID()}`
    await createTenant(id, [fresh])
    expect(await listHosts(one)).toEqual([`${one.id}.test`])
    await deleteTenant(id)
    await reconcileHosts(await getTenant(one.id))
    expect((await listHosts(one)).sort()).toEqual([`${one.id}.test`, fresh].sort())
  })

  test('and those of websites go with their tenant', async () => {
    const [one, other] = [await createTestTenant(), await createTestTenant()]
    const host = freshHost()
    await setWebsites(one, `https://${host}`)
    await deleteTenant(one.id)
    expect((await setWebsites(other, `https://${host}`)).status).toBe(200)
  })
})

describe('what was interrupted', () => {
  const claimed = async ({ id }: TestTenant) => (await findClaimedHosts(id)).map(({ host }) => host)
  const settle = async ({ id }: TestTenant) => reconcileHosts(await getTenant(id))

  test.each([[[]], [['https://a.kept.example']]])('before the write leaves nothing, on top of %p', async (before) => {
    const home = await createTestTenant()
    const kept = before.map((url) => url.replace('a.kept', home.id))
    if (kept.length) await setWebsites(home, ...kept)
    const version = (await home.tenant.db.select().from(configurations).get())?.version ?? 0
    const host = freshHost()
    await claimWebsites(home.id, { hosts: [host], origins: [], version: version + 1 })
    expect(await answersAt(host, home)).toBeTrue()
    await settle(home)
    expect(await answersAt(host, home)).toBeFalse()
    expect(await claimed(home)).toEqual(kept.map((url) => new URL(url).hostname))
    expect(await listWebsites(home)).toEqual(kept.length ? kept : undefined)
    // And whoever was only slow does not bring it back.
    await settle(home)
    expect((await setWebsites(home, `https://${host}`)).status).toBe(200)
    await settle(home)
    expect(await answersAt(host, home)).toBeTrue()
  })

  test('is found by the housekeeping', async () => {
    const home = await createTestTenant()
    await claimWebsites(home.id, { hosts: [freshHost()], origins: [], version: 1 })
    await withLease(await getTenant(home.id), 'housekeeping', async (held) => {
      for (const chore of housekeepingTasks().values()) await chore(held)
    })
    expect(await claimed(home)).toEqual([])
  })

  test('after the write is given back', async () => {
    const home = await createTestTenant()
    const [old, fresh] = [freshHost(), freshHost()]
    await setWebsites(home, `https://${old}`)
    const websiteUrls = JSON.stringify({ websiteUrls: [`https://${fresh}`] })
    await claimWebsites(home.id, { hosts: [fresh], origins: [], version: 2 })
    await home.tenant.write(async (tx) => {
      await tx.query('update configurations set metadata = ?, version = 2', [websiteUrls])
    })
    expect((await claimed(home)).sort()).toEqual([old, fresh].sort())
    await settle(home)
    expect(await claimed(home)).toEqual([fresh])
  })

  test('by a failure is settled at once', async () => {
    const home = await createTestTenant()
    const [old, fresh] = [freshHost(), freshHost()]
    await setWebsites(home, `https://${old}`)
    const { write } = home.tenant
    let failed = false
    const actor = {
      ...{ user: home.users.admin, roles: ['admin'], privileged: true, workspace: null },
      ...{ via: 'api-key' as const, scopes: [] },
    }
    const ctx = {
      ...(await getTenant(home.id)),
      actor,
      // The disk is full, for a moment.
      write: ((work) => {
        if (failed) return write(work)
        failed = true
        throw new Error('full')
      }) as typeof write,
    }
    const answer = { request: new Request('http://x.test'), set: { headers: {} } }
    const input = { metadata: { websiteUrls: [`https://${fresh}`] } }
    await expect(update(ctx, 'app-configuration', input, answer)).rejects.toThrow('full')
    expect(await claimed(home)).toEqual([old])
    expect(await listWebsites(home)).toEqual([`https://${old}`])
  })

  test('does not take the host of a change that is under way', async () => {
    const home = await createTestTenant()
    const host = freshHost()
    for (let round = 0; round < 5; round++) {
      const [{ status }] = await Promise.all([setWebsites(home, `https://${host}`), settle(home), settle(home)])
      expect(status).toBe(200)
      expect(await claimed(home)).toEqual([host])
      await Promise.all([setWebsites(home), settle(home)])
      expect(await claimed(home)).toEqual([])
    }
  })

  test('like a restored configuration gets its hosts again', async () => {
    const home = await createTestTenant()
    const [old, lost] = [freshHost(), freshHost()]
    await setWebsites(home, `https://${lost}`)
    for (const _ of [1, 2, 3]) await setWebsites(home, `https://${old}`)
    const websiteUrls = JSON.stringify({ websiteUrls: [`https://${lost}`] })
    await home.tenant.write(async (tx) => {
      await tx.query('update configurations set metadata = ?, version = 1', [websiteUrls])
    })
    await settle(home)
    expect(await claimed(home)).toEqual([lost])
    expect((await setWebsites(home, `https://${old}`)).status).toBe(200)
    expect(await claimed(home)).toEqual([old])
  })
})

test('another process sees the hosts of websites within five seconds, and keeps them', async () => {
  const env = { ATOLL_HOST_CLAIMS: 'open', ATOLL_DATABASE_URL: config.ATOLL_DATABASE_URL }
  const place = { at: createTempFolder(), env }
  const id = `w${crypto.randomUUID().slice(0, 8)}`
  await createTenantByCli(place, id)
  await using server = await startAtoll(place)
  const headers = await signIn(server.url, id)
  const [host, stray] = [freshHost(), freshHost()]
  const websiteUrls = [`https://${host}`]
  expect((await apiCaller(server.url, headers)('PUT', `/api${APP_PATH}`, { websiteUrls })).status).toBe(200)
  const shown = async () => (await runAtoll(`tenant show ${id} --json`, place)).json.hosts.sort()
  expect(await shown()).toEqual([host, `${id}.test`].sort())

  await runAtoll(`tenant hosts ${id} ${stray}`, place)
  expect(await shown()).toEqual([host, stray].sort())
  const there = await pollUntil(
    () => apiCaller(server.url, { host: stray })('GET', `/api${APP_PATH}`),
    ({ status }) => status === 200,
  )
  expect(there.body).toEqual({ metadata: { websiteUrls }, hosts: [{ host, state: 'served' }] })
})
