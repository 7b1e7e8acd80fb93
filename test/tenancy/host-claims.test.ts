import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { reconcileHosts } from '../../src/content/website-hosts'
import { DAY_MS, moveClock, now } from '../../src/core/clock'
import { checkProvenHosts } from '../../src/tenancy/host-checks'
import { isPublicName } from '../../src/tenancy/hosts'
import { registry } from '../../src/tenancy/registry'
import { getTenant, getTenantInfo, setHosts } from '../../src/tenancy/tenants'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startDnsServer } from '../fakes/dns-server'
import { callApi, createTestTenant } from '../test-tenant'

setDefaultTimeout(60_000)

const APP = '/configurations/app-configuration'
type TestTenant = Awaited<ReturnType<typeof createTestTenant>>

const freeHost = () => `h${crypto.randomUUID()}.example`
const saveWebsites = (home: TestTenant, ...hosts: string[]) =>
  home.as('admin').put(APP, { websiteUrls: hosts.map((host) => `https://${host}`) })
const hostsOf = async ({ id }: TestTenant) => (await getTenantInfo(id)).hosts.sort()
const isServedAt = async (host: string, home: TestTenant) =>
  (await callApi('GET', `http://${host}/api/me`, { headers: { 'x-api-key': home.tokens.user } })).status === 200
/** How often all processes were told to look again which tenant answers where. */
const tenantsVersion = async () =>
  (await registry.db.query("select version from versions where topic = 'tenants'"))[0]?.[0]
const settleWebsites = async ({ id }: TestTenant) => reconcileHosts(await getTenant(id))

afterEach(() => {
  Object.assign(config, { ATOLL_HOST_CLAIMS: 'off', ATOLL_PUBLIC_HOSTS: '', ATOLL_DEFAULT_TENANT: '' })
  moveClock(Date.now())
})

describe('with ATOLL_HOST_CLAIMS=off', () => {
  test('an admin who names the public host of the default tenant as a website does not get it', async () => {
    const [acme, evil] = [await createTestTenant(), await createTestTenant()]
    config.ATOLL_DEFAULT_TENANT = acme.id
    const host = freeHost()
    expect(await isServedAt(host, acme)).toBeTrue()
    const { status, body } = await saveWebsites(evil, host)
    expect([status, body.hosts]).toEqual([
      200,
      [{ host, state: 'unproven', message: expect.stringContaining('atoll tenant hosts') }],
    ])
    expect([await isServedAt(host, acme), await isServedAt(host, evil)]).toEqual([true, false])
    await settleWebsites(evil)
    expect(await hostsOf(evil)).toEqual([`${evil.id}.test`])
    expect((await saveWebsites(acme, host)).body.hosts).toEqual([{ host, state: 'served' }])
  })

  test('the hosts of websites are given by the operator alone, and everybody is told what is missing', async () => {
    const [home, other] = [await createTestTenant(), await createTestTenant()]
    const [given, free, taken] = [freeHost(), freeHost(), `${other.id}.test`]
    await setHosts(home.id, [given, `${home.id}.test`])
    const hosts = [
      { host: given, state: 'served' },
      { host: free, state: 'unproven', message: expect.stringContaining('operator') },
      { host: taken, state: 'taken', message: expect.stringContaining('operator') },
    ]
    expect((await saveWebsites(home, given, free, taken)).body.hosts).toEqual(hosts)
    const { body } = await callApi('GET', `http://${given}/api${APP}`)
    expect(body.hosts).toEqual(hosts)
    expect([await isServedAt(free, home), await isServedAt(taken, other)]).toEqual([false, true])
    await setHosts(home.id, [free])
    expect(await hostsOf(home)).toEqual([free])
    expect((await callApi('GET', `http://${free}/api${APP}`)).body.hosts).toMatchObject([
      { host: given, state: 'unproven' },
      { host: free, state: 'served' },
      { state: 'taken' },
    ])
  })

  test('a host that was claimed while claims were open keeps its tenant, until the website leaves', async () => {
    const [home, other] = [await createTestTenant(), await createTestTenant()]
    const [host, second] = [freeHost(), freeHost()]
    config.ATOLL_HOST_CLAIMS = 'open'
    await saveWebsites(home, host)
    config.ATOLL_HOST_CLAIMS = 'off'
    expect((await saveWebsites(home, host, second)).body.hosts).toMatchObject([
      { state: 'served' },
      { state: 'unproven' },
    ])
    await settleWebsites(home)
    moveClock(now() + 30 * DAY_MS)
    await checkProvenHosts()
    expect((await saveWebsites(other, host)).body.hosts).toMatchObject([{ host, state: 'taken' }])
    expect([await isServedAt(host, home), await isServedAt(host, other)]).toEqual([true, false])
    await saveWebsites(home, second)
    expect(await isServedAt(host, home)).toBeFalse()
    expect((await saveWebsites(home, host)).body.hosts).toMatchObject([{ state: 'unproven' }])
  })

  test('a website without hosts, or on the caller’s own machine, is told nothing of hosts', async () => {
    const home = await createTestTenant()
    expect((await home.as('admin').put(APP, { websiteUrls: ['http://localhost:5173'] })).body).toEqual({
      metadata: { websiteUrls: ['http://localhost:5173'] },
    })
  })
})

describe('in every mode', () => {
  const addresses = ['10.1.2.3', '203.0.113.9', '[2001:db8::1]', '0x0a.1.2.3', '167838211', '012.1.2.3', '10.1.515']
  const machines = ['intranet', 'intranet.', 'localhost', 'app.localhost', 'localhost.']

  test.each([...addresses, ...machines])('%s is no name that anybody could claim', (host) => {
    expect(isPublicName(host)).toBeFalse()
  })

  test.each(['dns', 'open'] as const)(
    '%s: addresses, single names and hosts of the installation stay free',
    async (mode) => {
      const home = await createTestTenant()
      const own = freeHost()
      Object.assign(config, { ATOLL_HOST_CLAIMS: mode, ATOLL_PUBLIC_HOSTS: `first.example, ${own.toUpperCase()}` })
      const { status, body } = await saveWebsites(home, ...addresses, ...machines, own)
      expect(status).toBe(200)
      await settleWebsites(home)
      expect(await hostsOf(home)).toEqual([`${home.id}.test`])
      const states = new Map(body.hosts.map((one: { host: string; state: string }) => [one.host, one.state]))
      expect(states.get(own)).toBe('taken')
      expect(states.get('10.1.2.3')).toBe('unproven')
    },
  )
})

describe('with ATOLL_HOST_CLAIMS=dns', () => {
  let names: Awaited<ReturnType<typeof startDnsServer>>
  beforeAll(async () => {
    names = await startDnsServer({})
    config.ATOLL_DNS_SERVERS = names.address
  })
  afterAll(() => {
    names.stop()
    config.ATOLL_DNS_SERVERS = ''
  })
  beforeEach(() => {
    config.ATOLL_HOST_CLAIMS = 'dns'
  })
  const addProofRecord = (home: TestTenant, host: string) => {
    names.texts[`_atoll.${host}`] = ['v=spf1 -all', `atoll-tenant=${home.id}`]
  }
  const runHostTasks = async (home: TestTenant) => {
    const tenant = await getTenant(home.id)
    const signal = new AbortController().signal
    const held = { ...tenant, signal, require: async () => {} }
    await reconcileHosts(held)
    await checkProvenHosts(tenant.tenant)
  }

  test('a host is served once its TXT record names the tenant', async () => {
    const home = await createTestTenant()
    const host = freeHost()
    const { body } = await saveWebsites(home, host)
    const record = { type: 'TXT', name: `_atoll.${host}`, value: `atoll-tenant=${home.id}` }
    expect(body.hosts).toEqual([{ host, state: 'unproven', message: expect.stringContaining(record.value), record }])
    expect(await isServedAt(host, home)).toBeFalse()
    addProofRecord(home, host)
    expect((await saveWebsites(home, host)).body.hosts).toEqual([{ host, state: 'served' }])
    expect(await isServedAt(host, home)).toBeTrue()
    // The website leaves, and so does the host.
    await saveWebsites(home)
    expect(await isServedAt(host, home)).toBeFalse()
  })

  test('a record that comes later is found by the housekeeping', async () => {
    const home = await createTestTenant()
    const host = freeHost()
    await saveWebsites(home, host)
    const before = await tenantsVersion()
    await runHostTasks(home)
    expect([await isServedAt(host, home), await tenantsVersion()]).toEqual([false, before])
    addProofRecord(home, host)
    await runHostTasks(home)
    expect(await isServedAt(host, home)).toBeTrue()
  })

  test.each([
    ['of another tenant', ['atoll-tenant=other']],
    ['that only begins like it', ['atoll-tenant=']],
    ['of nothing', []],
    ['that cannot be read', 'broken'],
  ] as const)('a record %s proves nothing', async (_, texts) => {
    const home = await createTestTenant()
    const host = freeHost()
    names.texts[`_atoll.${host}`] = texts === 'broken' ? texts : texts.map((text) => `${text}`)
    expect((await saveWebsites(home, host)).body.hosts).toMatchObject([{ state: 'unproven' }])
    expect(await isServedAt(host, home)).toBeFalse()
  })

  test('what another tenant has is not taken from it by a record', async () => {
    const [home, other] = [await createTestTenant(), await createTestTenant()]
    const host = `${other.id}.test`
    addProofRecord(home, host)
    expect((await saveWebsites(home, host)).body.hosts).toMatchObject([{ host, state: 'taken' }])
    expect(await isServedAt(host, other)).toBeTrue()
  })

  test('a record that is gone for three days takes the host away, and not before', async () => {
    const home = await createTestTenant()
    const host = freeHost()
    addProofRecord(home, host)
    await saveWebsites(home, host)
    const dayLater = async () => {
      moveClock(now() + DAY_MS + 1_000)
      await checkProvenHosts()
      return isServedAt(host, home)
    }
    expect(await dayLater()).toBeTrue()
    delete names.texts[`_atoll.${host}`]
    expect([await dayLater(), await dayLater()]).toEqual([true, true])
    addProofRecord(home, host)
    expect(await dayLater()).toBeTrue()
    // It counts from its last absence, and a server that does not answer says nothing.
    delete names.texts[`_atoll.${host}`]
    expect(await dayLater()).toBeTrue()
    names.texts[`_atoll.${host}`] = 'broken'
    expect([await dayLater(), await dayLater(), await dayLater(), await dayLater()]).toEqual([true, true, true, true])
    delete names.texts[`_atoll.${host}`]
    expect(await dayLater()).toBeFalse()
    expect(await hostsOf(home)).toEqual([`${home.id}.test`])
    const { body } = await home.stranger.get(APP)
    expect(body.hosts).toMatchObject([{ host, state: 'unproven' }])
    addProofRecord(home, host)
    await runHostTasks(home)
    expect(await isServedAt(host, home)).toBeTrue()
  })

  test('a record is looked at once a day', async () => {
    const home = await createTestTenant()
    const host = freeHost()
    addProofRecord(home, host)
    await saveWebsites(home, host)
    const looked = () => names.asked.filter((name) => name === `_atoll.${host}`).length
    const before = looked()
    await runHostTasks(home)
    await checkProvenHosts()
    await saveWebsites(home, host)
    expect(looked()).toBe(before)
    moveClock(now() + DAY_MS + 1_000)
    await Promise.all([checkProvenHosts(home.id), runHostTasks(home)])
    await checkProvenHosts()
    expect(looked() - before).toBeWithin(1, 3)
  })

  test('a host that the operator gave stays whatever its record says', async () => {
    const home = await createTestTenant()
    const host = freeHost()
    addProofRecord(home, host)
    await saveWebsites(home, host)
    await setHosts(home.id, [host, `${home.id}.test`])
    delete names.texts[`_atoll.${host}`]
    for (let day = 0; day < 5; day++) {
      moveClock(now() + DAY_MS + 1_000)
      await checkProvenHosts()
    }
    expect(await isServedAt(host, home)).toBeTrue()
  })

  test('a real server asks the servers of ATOLL_DNS_SERVERS', async () => {
    const id = `d${crypto.randomUUID().slice(0, 8)}`
    const env = {
      ATOLL_HOST_CLAIMS: 'dns',
      ATOLL_DNS_SERVERS: names.address,
      ATOLL_DATABASE_URL: config.ATOLL_DATABASE_URL,
    }
    const place = { at: createTempFolder(), env }
    await createTenantByCli(place, id)
    await using server = await startAtoll(place)
    const call = apiCaller(server.url, await signIn(server.url, id))
    const [proven, unproven] = [freeHost(), freeHost()]
    names.texts[`_atoll.${proven}`] = [`atoll-tenant=${id}`]
    const websiteUrls = [`https://${proven}`, `https://${unproven}`]
    const { status } = await call('PUT', `/api${APP}`, { websiteUrls })
    expect(status).toBe(200)
    expect(names.asked).toContain(`_atoll.${unproven}`)
    const { body } = await apiCaller(server.url, { host: proven })('GET', `/api${APP}`)
    expect(body.metadata).toEqual({ websiteUrls })
  })
})

test('settling what agrees already leaves the registry alone', async () => {
  const home = await createTestTenant()
  await saveWebsites(home, freeHost(), freeHost())
  const before = await tenantsVersion()
  await settleWebsites(home)
  expect(await tenantsVersion()).toEqual(before)
})
