import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { update } from '../../src/content/configurations'
import { reconcileHosts } from '../../src/content/website-hosts'
import { housekeepingTasks } from '../../src/jobs/housekeeping'
import { withLease } from '../../src/jobs/with-lease'
import { configurations } from '../../src/platform/settings/tables'
import { claimWebsites, findClaimedHosts } from '../../src/tenancy/hosts'
import { getTenantInfo } from '../../src/tenancy/tenant-list'
import { createTenant, deleteTenant, getTenant, setHosts } from '../../src/tenancy/tenants'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { errorOf } from '../rejections'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'
import { waitUntil } from '../wait-until'

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
const setWebsites = (testTenant: TestTenant, ...websiteUrls: string[]) =>
  testTenant.as('admin').put(APP_PATH, { websiteUrls })
const listHosts = async ({ id }: TestTenant) => (await getTenantInfo(id)).hosts
const listWebsites = async (testTenant: TestTenant) =>
  (await testTenant.anonymous.get(APP_PATH)).body.metadata.websiteUrls
/** Whether this tenant answers at a host. */
const answersAt = async (host: string, testTenant: TestTenant) => {
  const { status } = await callApi('GET', `http://${host}/api/me`, { headers: { 'x-api-key': testTenant.tokens.user } })
  return status === 200
}

describe('the websites of a tenant', () => {
  test('a tenant answers at the hosts of its websiteUrls until they are removed', async () => {
    const testTenant = await createTestTenant()
    const [one, two] = [freshHost(), freshHost()]
    expect(await answersAt(one, testTenant)).toBeFalse()
    expect(
      (await setWebsites(testTenant, `https://${one}/`, `http://${two}:8080/shop?x=1`, `https://${one.toUpperCase()}`))
        .status,
    ).toBe(200)
    expect([await answersAt(one, testTenant), await answersAt(`${two}:80`, testTenant)]).toEqual([true, true])
    expect((await listHosts(testTenant)).sort()).toEqual([`${testTenant.id}.test`, one, two].sort())
    expect((await setWebsites(testTenant, `https://${two}`)).status).toBe(200)
    expect([await answersAt(one, testTenant), await answersAt(two, testTenant)]).toEqual([false, true])
    // Other keys do not affect the hosts.
    await testTenant.as('admin').put(APP_PATH, { logo: 'x' })
    expect(await answersAt(two, testTenant)).toBeTrue()
    await testTenant.as('admin').put(APP_PATH, { websiteUrls: null })
    expect(await answersAt(two, testTenant)).toBeFalse()
    expect(await listHosts(testTenant)).toEqual([`${testTenant.id}.test`])
  })

  test('a change with a host of another tenant answers 409 HOST_TAKEN and changes nothing', async () => {
    const [one, otherTenant] = [await createTestTenant(), await createTestTenant()]
    const [own, wanted, free] = [freshHost(), freshHost(), freshHost()]
    await setWebsites(one, `https://${wanted}`)
    await setWebsites(otherTenant, `https://${own}`)
    // Fully qualified names with a final dot are taken, too.
    for (const full of [`${wanted}.`, `${one.id}.test.`]) {
      expect(statusAndCode(await setWebsites(otherTenant, `https://${full}`))).toEqual([409, 'HOST_TAKEN'])
      expect(await answersAt(`${full}:80`, one)).toBeTrue()
    }
    for (const taken of [wanted, `${one.id}.test`]) {
      const answer = await otherTenant
        .as('admin')
        .put(APP_PATH, { websiteUrls: [`https://${free}`, `https://${taken}`], logo: 'x' })
      expect([...statusAndCode(answer), answer.body.details]).toEqual([409, 'HOST_TAKEN', { hosts: [taken] }])
    }
    expect((await otherTenant.anonymous.get(APP_PATH)).body).toEqual({
      metadata: { websiteUrls: [`https://${own}`] },
      hosts: [{ host: own, state: 'served' }],
    })
    expect((await listHosts(otherTenant)).sort()).toEqual([`${otherTenant.id}.test`, own].sort())
    expect([await answersAt(wanted, one), await answersAt(free, otherTenant)]).toEqual([true, false])
    // A released host is free.
    await setWebsites(one)
    expect((await setWebsites(otherTenant, `https://${wanted}`)).status).toBe(200)
    expect(await answersAt(wanted, otherTenant)).toBeTrue()
  })

  test('a host that several tenants claim at once goes to exactly one of them, and the others get 409', async () => {
    const testTenants = await Promise.all([1, 2, 3].map(() => createTestTenant()))
    const host = freshHost()
    const answers = await Promise.all(testTenants.map((testTenant) => setWebsites(testTenant, `https://${host}`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    const winner = testTenants[answers.findIndex(({ status }) => status === 200)]!
    expect(await answersAt(host, winner)).toBeTrue()
  })

  test('several tenants may name websites on localhost, which claim no hosts', async () => {
    const [one, otherTenant] = [await createTestTenant(), await createTestTenant()]
    const urls = ['http://localhost:5173', 'http://127.0.0.1:8080', 'http://[::1]:3000', 'http://app.localhost']
    for (const testTenant of [one, otherTenant]) {
      expect((await setWebsites(testTenant, ...urls)).status).toBe(200)
      expect(await listHosts(testTenant)).toEqual([`${testTenant.id}.test`])
    }
  })

  test('the hosts of a tenant match its websiteUrls after concurrent writes', async () => {
    const testTenant = await createTestTenant()
    const names = Array.from({ length: 6 }, freshHost)
    const answers = await Promise.all(names.map((host) => setWebsites(testTenant, `https://${host}`)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const [url] = await listWebsites(testTenant)
    expect((await listHosts(testTenant)).sort()).toEqual([`${testTenant.id}.test`, new URL(url).hostname].sort())
    const host = freshHost()
    await Promise.all([
      setWebsites(testTenant),
      setWebsites(testTenant, `https://${host}`),
      setWebsites(testTenant, `https://${host}`),
      setWebsites(testTenant),
    ])
    const remainingHosts = (await listWebsites(testTenant)).map((one: string) => new URL(one).hostname)
    expect((await listHosts(testTenant)).sort()).toEqual([`${testTenant.id}.test`, ...remainingHosts].sort())
  })
})

describe('hosts that are set by the command line', () => {
  test('hosts of the command line and hosts of websites are removed independently of each other', async () => {
    const testTenant = await createTestTenant()
    const [first, given, both, own] = [`${testTenant.id}.test`, freshHost(), freshHost(), freshHost()]
    await setHosts(testTenant.id, [first, given, both])
    await setWebsites(testTenant, `https://${both}`, `https://${own}`)
    expect((await listHosts(testTenant)).sort()).toEqual([first, given, both, own].sort())
    await setHosts(testTenant.id, [first])
    expect((await listHosts(testTenant)).sort()).toEqual([first, both, own].sort())
    await setHosts(testTenant.id, [first, given, both])
    await setWebsites(testTenant)
    expect((await listHosts(testTenant)).sort()).toEqual([first, given, both].sort())
    await setHosts(testTenant.id, [])
    expect(await listHosts(testTenant)).toEqual([])
  })

  test('a host of the command line is taken from the website of another tenant until the new tenant is deleted', async () => {
    const [one, otherTenant] = [await createTestTenant(), await createTestTenant()]
    const host = freshHost()
    await setWebsites(one, `https://${host}`)
    await setHosts(otherTenant.id, [host])
    expect([await answersAt(host, one), await answersAt(host, otherTenant)]).toEqual([false, true])
    await reconcileHosts(await getTenant(one.id))
    expect(await answersAt(host, otherTenant)).toBeTrue()
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

  test('the hosts of a deleted tenant are free', async () => {
    const [one, otherTenant] = [await createTestTenant(), await createTestTenant()]
    const host = freshHost()
    await setWebsites(one, `https://${host}`)
    await deleteTenant(one.id)
    expect((await setWebsites(otherTenant, `https://${host}`)).status).toBe(200)
  })
})

describe('claims of interrupted changes', () => {
  const listClaimedHosts = async ({ id }: TestTenant) => (await findClaimedHosts(id)).map(({ host }) => host)
  const reconcile = async ({ id }: TestTenant) => reconcileHosts(await getTenant(id))

  test.each([[[]], [['https://a.kept.example']]])(
    'a claim without its write is released, and the websites %p stay',
    async (before) => {
      const testTenant = await createTestTenant()
      const keptUrls = before.map((url) => url.replace('a.kept', testTenant.id))
      if (keptUrls.length) await setWebsites(testTenant, ...keptUrls)
      const version = (await testTenant.tenant.db.select().from(configurations).get())?.version ?? 0
      const host = freshHost()
      await claimWebsites(testTenant.id, { hosts: [host], origins: [], version: version + 1 })
      expect(await answersAt(host, testTenant)).toBeTrue()
      await reconcile(testTenant)
      expect(await answersAt(host, testTenant)).toBeFalse()
      expect(await listClaimedHosts(testTenant)).toEqual(keptUrls.map((url) => new URL(url).hostname))
      expect(await listWebsites(testTenant)).toEqual(keptUrls.length ? keptUrls : undefined)
      // A later change can claim the host.
      await reconcile(testTenant)
      expect((await setWebsites(testTenant, `https://${host}`)).status).toBe(200)
      await reconcile(testTenant)
      expect(await answersAt(host, testTenant)).toBeTrue()
    },
  )

  test('housekeeping releases the claims of interrupted changes', async () => {
    const testTenant = await createTestTenant()
    await claimWebsites(testTenant.id, { hosts: [freshHost()], origins: [], version: 1 })
    await withLease(await getTenant(testTenant.id), 'housekeeping', async (leasedTenant) => {
      for (const task of housekeepingTasks().values()) await task(leasedTenant)
    })
    expect(await listClaimedHosts(testTenant)).toEqual([])
  })

  test('a reconciliation after the write releases the hosts of the former websites', async () => {
    const testTenant = await createTestTenant()
    const [old, fresh] = [freshHost(), freshHost()]
    await setWebsites(testTenant, `https://${old}`)
    const websiteUrls = JSON.stringify({ websiteUrls: [`https://${fresh}`] })
    await claimWebsites(testTenant.id, { hosts: [fresh], origins: [], version: 2 })
    await testTenant.tenant.write(async (tx) => {
      await tx.query('update configurations set metadata = ?, version = 2', [websiteUrls])
    })
    expect((await listClaimedHosts(testTenant)).sort()).toEqual([old, fresh].sort())
    await reconcile(testTenant)
    expect(await listClaimedHosts(testTenant)).toEqual([fresh])
  })

  test('a change whose write fails releases its claim at once', async () => {
    const testTenant = await createTestTenant()
    const [old, fresh] = [freshHost(), freshHost()]
    await setWebsites(testTenant, `https://${old}`)
    const { write } = testTenant.tenant
    let failed = false
    const actor = {
      ...{ user: testTenant.users.admin, roles: ['admin'], privileged: true, workspace: null },
      ...{ via: 'api-key' as const, scopes: [] },
    }
    const ctx = {
      ...(await getTenant(testTenant.id)),
      actor,
      // The first write fails as if the disk were full.
      write: ((work) => {
        if (failed) return write(work)
        failed = true
        throw new Error('full')
      }) as typeof write,
    }
    const input = { metadata: { websiteUrls: [`https://${fresh}`] } }
    expect((await errorOf(update(ctx, 'app-configuration', input, {}))).message).toContain('full')
    expect(await listClaimedHosts(testTenant)).toEqual([old])
    expect(await listWebsites(testTenant)).toEqual([`https://${old}`])
  })

  test('a reconciliation during a change keeps the host that the change claims', async () => {
    const testTenant = await createTestTenant()
    const host = freshHost()
    for (let round = 0; round < 5; round++) {
      const [{ status }] = await Promise.all([
        setWebsites(testTenant, `https://${host}`),
        reconcile(testTenant),
        reconcile(testTenant),
      ])
      expect(status).toBe(200)
      expect(await listClaimedHosts(testTenant)).toEqual([host])
      await Promise.all([setWebsites(testTenant), reconcile(testTenant)])
      expect(await listClaimedHosts(testTenant)).toEqual([])
    }
  })

  test('a restored configuration gets the hosts of its websites again', async () => {
    const testTenant = await createTestTenant()
    const [old, lost] = [freshHost(), freshHost()]
    await setWebsites(testTenant, `https://${lost}`)
    for (const _ of [1, 2, 3]) await setWebsites(testTenant, `https://${old}`)
    const websiteUrls = JSON.stringify({ websiteUrls: [`https://${lost}`] })
    await testTenant.tenant.write(async (tx) => {
      await tx.query('update configurations set metadata = ?, version = 1', [websiteUrls])
    })
    await reconcile(testTenant)
    expect(await listClaimedHosts(testTenant)).toEqual([lost])
    expect((await setWebsites(testTenant, `https://${old}`)).status).toBe(200)
    expect(await listClaimedHosts(testTenant)).toEqual([old])
  })
})

test('another process sees the hosts of websites and keeps them when it sets its own hosts', async () => {
  const env = { ATOLL_HOST_CLAIMS: 'open', ATOLL_DATABASE_URL: config.ATOLL_DATABASE_URL }
  const place = { at: createTempFolder(), env }
  const id = `w${crypto.randomUUID().slice(0, 8)}`
  await createTenantByCli(place, id)
  await using server = await startAtoll(place)
  const headers = await signIn(server.url, id)
  const [host, cliHost] = [freshHost(), freshHost()]
  const websiteUrls = [`https://${host}`]
  expect((await apiCaller(server.url, headers)('PUT', `/api${APP_PATH}`, { websiteUrls })).status).toBe(200)
  const readHosts = async () => (await runAtoll(`tenant show ${id} --json`, place)).json.hosts.sort()
  expect(await readHosts()).toEqual([host, `${id}.test`].sort())

  await runAtoll(`tenant hosts ${id} ${cliHost}`, place)
  expect(await readHosts()).toEqual([host, cliHost].sort())
  const answer = await waitUntil(
    () => apiCaller(server.url, { host: cliHost })('GET', `/api${APP_PATH}`),
    ({ status }) => status === 200,
  )
  expect(answer.body).toEqual({ metadata: { websiteUrls }, hosts: [{ host, state: 'served' }] })
})
