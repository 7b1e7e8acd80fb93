import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { reconcileHosts } from '../../src/content/website-hosts'
import { DAY_MS, moveClock, now } from '../../src/core/clock'
import { checkProvenHosts } from '../../src/tenancy/host-checks'
import { isPublicName } from '../../src/tenancy/hosts'
import { registry } from '../../src/tenancy/registry'
import { getTenantInfo } from '../../src/tenancy/tenant-list'
import { getTenant, setHosts } from '../../src/tenancy/tenants'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startDnsServer } from '../fakes/dns-server'
import { callApi, createTestTenant } from '../test-tenant'

setDefaultTimeout(60_000)

const APP = '/configurations/app-configuration'
type TestTenant = Awaited<ReturnType<typeof createTestTenant>>

const freeHost = () => `h${crypto.randomUUID()}.example`
const saveWebsites = (t: TestTenant, ...hosts: string[]) =>
  t.as('admin').put(APP, { websiteUrls: hosts.map((host) => `https://${host}`) })
const hostsOf = async ({ id }: TestTenant) => (await getTenantInfo(id)).hosts.sort()
const isServedAt = async (host: string, t: TestTenant) =>
  (await callApi('GET', `http://${host}/api/me`, { headers: { 'x-api-key': t.tokens.user } })).status === 200
/** The version of the registry's tenants, which grows when processes have to reload which tenant serves a host. */
const tenantsVersion = async () =>
  (await registry.db.query("select version from versions where topic = 'tenants'"))[0]?.[0]
const settleWebsites = async ({ id }: TestTenant) => reconcileHosts(await getTenant(id))

afterEach(() => {
  Object.assign(config, { ATOLL_HOST_CLAIMS: 'off', ATOLL_PUBLIC_HOSTS: '', ATOLL_DEFAULT_TENANT: '' })
  moveClock()
})

describe('host claims with ATOLL_HOST_CLAIMS=off', () => {
  test('an admin who saves a host of the default tenant as a website URL does not get the host', async () => {
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

  test('a website host is served only once the operator assigns it, and the answer reports the state of each', async () => {
    const [t, otherTenant] = [await createTestTenant(), await createTestTenant()]
    const [assigned, free, taken] = [freeHost(), freeHost(), `${otherTenant.id}.test`]
    await setHosts(t.id, [assigned, `${t.id}.test`])
    const hosts = [
      { host: assigned, state: 'served' },
      { host: free, state: 'unproven', message: expect.stringContaining('operator') },
      { host: taken, state: 'taken', message: expect.stringContaining('operator') },
    ]
    expect((await saveWebsites(t, assigned, free, taken)).body.hosts).toEqual(hosts)
    const { body } = await callApi('GET', `http://${assigned}/api${APP}`)
    expect(body.hosts).toEqual(hosts)
    expect([await isServedAt(free, t), await isServedAt(taken, otherTenant)]).toEqual([false, true])
    await setHosts(t.id, [free])
    expect(await hostsOf(t)).toEqual([free])
    expect((await callApi('GET', `http://${free}/api${APP}`)).body.hosts).toMatchObject([
      { host: assigned, state: 'unproven' },
      { host: free, state: 'served' },
      { state: 'taken' },
    ])
  })

  test('a host that was claimed while claims were open stays with its tenant until the website URL is removed', async () => {
    const [t, otherTenant] = [await createTestTenant(), await createTestTenant()]
    const [host, second] = [freeHost(), freeHost()]
    config.ATOLL_HOST_CLAIMS = 'open'
    await saveWebsites(t, host)
    config.ATOLL_HOST_CLAIMS = 'off'
    expect((await saveWebsites(t, host, second)).body.hosts).toMatchObject([{ state: 'served' }, { state: 'unproven' }])
    await settleWebsites(t)
    moveClock(now() + 30 * DAY_MS)
    await checkProvenHosts()
    expect((await saveWebsites(otherTenant, host)).body.hosts).toMatchObject([{ host, state: 'taken' }])
    expect([await isServedAt(host, t), await isServedAt(host, otherTenant)]).toEqual([true, false])
    await saveWebsites(t, second)
    expect(await isServedAt(host, t)).toBeFalse()
    expect((await saveWebsites(t, host)).body.hosts).toMatchObject([{ state: 'unproven' }])
  })

  test('a website URL on localhost is saved and the answer has no hosts', async () => {
    const t = await createTestTenant()
    expect((await t.as('admin').put(APP, { websiteUrls: ['http://localhost:5173'] })).body).toEqual({
      metadata: { websiteUrls: ['http://localhost:5173'] },
    })
  })
})

describe('host claims in every mode', () => {
  const addresses = ['10.1.2.3', '203.0.113.9', '[2001:db8::1]', '0x0a.1.2.3', '167838211', '012.1.2.3', '10.1.515']
  const machines = ['intranet', 'intranet.', 'localhost', 'app.localhost', 'localhost.']

  test.each([...addresses, ...machines])('isPublicName returns false for %s', (host) => {
    expect(isPublicName(host)).toBeFalse()
  })

  test.each(['dns', 'open'] as const)(
    'ATOLL_HOST_CLAIMS=%s assigns no IP address, no single-label name and no host of ATOLL_PUBLIC_HOSTS',
    async (mode) => {
      const t = await createTestTenant()
      const own = freeHost()
      Object.assign(config, { ATOLL_HOST_CLAIMS: mode, ATOLL_PUBLIC_HOSTS: `first.example, ${own.toUpperCase()}` })
      const { status, body } = await saveWebsites(t, ...addresses, ...machines, own)
      expect(status).toBe(200)
      await settleWebsites(t)
      expect(await hostsOf(t)).toEqual([`${t.id}.test`])
      const states = new Map(body.hosts.map((one: { host: string; state: string }) => [one.host, one.state]))
      expect(states.get(own)).toBe('taken')
      expect(states.get('10.1.2.3')).toBe('unproven')
    },
  )
})

describe('host claims with ATOLL_HOST_CLAIMS=dns', () => {
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
  const addProofRecord = (t: TestTenant, host: string) => {
    names.texts[`_atoll.${host}`] = ['v=spf1 -all', `atoll-tenant=${t.id}`]
  }
  const runHostTasks = async (t: TestTenant) => {
    const tenant = await getTenant(t.id)
    const signal = new AbortController().signal
    const held = { ...tenant, signal, require: async () => {} }
    await reconcileHosts(held)
    await checkProvenHosts(tenant.tenant)
  }

  test('a website host is served once its TXT record names the tenant, and no longer once its URL is removed', async () => {
    const t = await createTestTenant()
    const host = freeHost()
    const { body } = await saveWebsites(t, host)
    const record = { type: 'TXT', name: `_atoll.${host}`, value: `atoll-tenant=${t.id}` }
    expect(body.hosts).toEqual([{ host, state: 'unproven', message: expect.stringContaining(record.value), record }])
    expect(await isServedAt(host, t)).toBeFalse()
    addProofRecord(t, host)
    expect((await saveWebsites(t, host)).body.hosts).toEqual([{ host, state: 'served' }])
    expect(await isServedAt(host, t)).toBeTrue()
    // Removing the website URL releases its host.
    await saveWebsites(t)
    expect(await isServedAt(host, t)).toBeFalse()
  })

  test('the host tasks find a TXT record that was added after the website was saved', async () => {
    const t = await createTestTenant()
    const host = freeHost()
    await saveWebsites(t, host)
    const before = await tenantsVersion()
    await runHostTasks(t)
    expect([await isServedAt(host, t), await tenantsVersion()]).toEqual([false, before])
    addProofRecord(t, host)
    await runHostTasks(t)
    expect(await isServedAt(host, t)).toBeTrue()
  })

  test.each([
    ['another tenant', ['atoll-tenant=other']],
    ['an empty tenant', ['atoll-tenant=']],
    ['nothing', []],
    ['a broken answer', 'broken'],
  ] as const)('a TXT record with %s leaves the host unproven', async (_, texts) => {
    const t = await createTestTenant()
    const host = freeHost()
    names.texts[`_atoll.${host}`] = texts === 'broken' ? texts : texts.map((text) => `${text}`)
    expect((await saveWebsites(t, host)).body.hosts).toMatchObject([{ state: 'unproven' }])
    expect(await isServedAt(host, t)).toBeFalse()
  })

  test('a TXT record does not take a host away from the tenant that has it', async () => {
    const [t, otherTenant] = [await createTestTenant(), await createTestTenant()]
    const host = `${otherTenant.id}.test`
    addProofRecord(t, host)
    expect((await saveWebsites(t, host)).body.hosts).toMatchObject([{ host, state: 'taken' }])
    expect(await isServedAt(host, otherTenant)).toBeTrue()
  })

  test('a host is released only when its TXT record was missing for three days in a row', async () => {
    const t = await createTestTenant()
    const host = freeHost()
    addProofRecord(t, host)
    await saveWebsites(t, host)
    const dayLater = async () => {
      moveClock(now() + DAY_MS + 1_000)
      await checkProvenHosts()
      return isServedAt(host, t)
    }
    expect(await dayLater()).toBeTrue()
    delete names.texts[`_atoll.${host}`]
    expect([await dayLater(), await dayLater()]).toEqual([true, true])
    addProofRecord(t, host)
    expect(await dayLater()).toBeTrue()
    // The days count from the last time the record disappeared; a broken answer of the server does not count.
    delete names.texts[`_atoll.${host}`]
    expect(await dayLater()).toBeTrue()
    names.texts[`_atoll.${host}`] = 'broken'
    expect([await dayLater(), await dayLater(), await dayLater(), await dayLater()]).toEqual([true, true, true, true])
    delete names.texts[`_atoll.${host}`]
    expect(await dayLater()).toBeFalse()
    expect(await hostsOf(t)).toEqual([`${t.id}.test`])
    const { body } = await t.anonymous.get(APP)
    expect(body.hosts).toMatchObject([{ host, state: 'unproven' }])
    addProofRecord(t, host)
    await runHostTasks(t)
    expect(await isServedAt(host, t)).toBeTrue()
  })

  test('the TXT record of a served host is checked once a day', async () => {
    const t = await createTestTenant()
    const host = freeHost()
    addProofRecord(t, host)
    await saveWebsites(t, host)
    const countLookups = () => names.asked.filter((name) => name === `_atoll.${host}`).length
    const before = countLookups()
    await runHostTasks(t)
    await checkProvenHosts()
    await saveWebsites(t, host)
    expect(countLookups()).toBe(before)
    moveClock(now() + DAY_MS + 1_000)
    await Promise.all([checkProvenHosts(t.id), runHostTasks(t)])
    await checkProvenHosts()
    expect(countLookups() - before).toBeWithin(1, 3)
  })

  test('a host that the operator assigned is served even without a TXT record', async () => {
    const t = await createTestTenant()
    const host = freeHost()
    addProofRecord(t, host)
    await saveWebsites(t, host)
    await setHosts(t.id, [host, `${t.id}.test`])
    delete names.texts[`_atoll.${host}`]
    for (let day = 0; day < 5; day++) {
      moveClock(now() + DAY_MS + 1_000)
      await checkProvenHosts()
    }
    expect(await isServedAt(host, t)).toBeTrue()
  })

  test('a server queries the name servers of ATOLL_DNS_SERVERS', async () => {
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

test('reconcileHosts leaves the registry unchanged when the hosts already agree', async () => {
  const t = await createTestTenant()
  await saveWebsites(t, freeHost(), freeHost())
  const before = await tenantsVersion()
  await settleWebsites(t)
  expect(await tenantsVersion()).toEqual(before)
})
