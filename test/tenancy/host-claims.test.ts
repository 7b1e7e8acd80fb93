import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { settleHosts } from '../../src/content/websites'
import { DAY, moveClock, now } from '../../src/core/clock'
import { chores } from '../../src/operations/chores'
import { checkProvenHosts } from '../../src/tenancy/host-checks'
import { isPublicName } from '../../src/tenancy/hosts'
import { registry } from '../../src/tenancy/registry'
import { setHosts, showTenant, tenantNamed } from '../../src/tenancy/tenants'
import { ask, house } from '../house'
import { startNameserver } from '../outside/nameserver'
import { caller, emptyFolder, makeTenant, serve, signIn } from '../outside/program'

setDefaultTimeout(60_000)

const APP = '/configurations/app-configuration'
type House = Awaited<ReturnType<typeof house>>

const freeHost = () => `h${crypto.randomUUID()}.example`
const save = (home: House, ...hosts: string[]) =>
  home.as('admin').put(APP, { websiteUrls: hosts.map((host) => `https://${host}`) })
const hostsOf = async ({ id }: House) => (await showTenant(id)).hosts.sort()
const answersAt = async (host: string, home: House) =>
  (await ask('GET', `http://${host}/api/me`, { headers: { 'x-api-key': home.tokens.user } })).status === 200
/** How often all processes were told to look again which tenant answers where. */
const version = async () => (await registry.db.ask("select version from versions where topic = 'tenants'"))[0]?.[0]
const settle = async ({ id }: House) => settleHosts(await tenantNamed(id))

afterEach(() => {
  Object.assign(config, { ATOLL_HOST_CLAIMS: 'off', ATOLL_PUBLIC_HOSTS: '', ATOLL_DEFAULT_TENANT: '' })
  moveClock(Date.now())
})

describe('with ATOLL_HOST_CLAIMS=off', () => {
  test('an admin who names the public host of the default tenant as a website does not get it', async () => {
    const [acme, evil] = [await house(), await house()]
    config.ATOLL_DEFAULT_TENANT = acme.id
    const host = freeHost()
    expect(await answersAt(host, acme)).toBeTrue()
    const { status, body } = await save(evil, host)
    expect([status, body.hosts]).toEqual([
      200,
      [{ host, state: 'unproven', message: expect.stringContaining('atoll tenant hosts') }],
    ])
    expect([await answersAt(host, acme), await answersAt(host, evil)]).toEqual([true, false])
    await settle(evil)
    expect(await hostsOf(evil)).toEqual([`${evil.id}.test`])
    expect((await save(acme, host)).body.hosts).toEqual([{ host, state: 'served' }])
  })

  test('the hosts of websites are given by the operator alone, and everybody is told what is missing', async () => {
    const [home, other] = [await house(), await house()]
    const [given, free, taken] = [freeHost(), freeHost(), `${other.id}.test`]
    await setHosts(home.id, [given, `${home.id}.test`])
    const hosts = [
      { host: given, state: 'served' },
      { host: free, state: 'unproven', message: expect.stringContaining('operator') },
      { host: taken, state: 'taken', message: expect.stringContaining('operator') },
    ]
    expect((await save(home, given, free, taken)).body.hosts).toEqual(hosts)
    const { body } = await ask('GET', `http://${given}/api${APP}`)
    expect(body.hosts).toEqual(hosts)
    expect([await answersAt(free, home), await answersAt(taken, other)]).toEqual([false, true])
    await setHosts(home.id, [free])
    expect(await hostsOf(home)).toEqual([free])
    expect((await ask('GET', `http://${free}/api${APP}`)).body.hosts).toMatchObject([
      { host: given, state: 'unproven' },
      { host: free, state: 'served' },
      { state: 'taken' },
    ])
  })

  test('a host that was claimed while claims were open keeps its tenant, until the website leaves', async () => {
    const [home, other] = [await house(), await house()]
    const [host, second] = [freeHost(), freeHost()]
    config.ATOLL_HOST_CLAIMS = 'open'
    await save(home, host)
    config.ATOLL_HOST_CLAIMS = 'off'
    expect((await save(home, host, second)).body.hosts).toMatchObject([{ state: 'served' }, { state: 'unproven' }])
    await settle(home)
    moveClock(now() + 30 * DAY)
    await checkProvenHosts()
    expect((await save(other, host)).body.hosts).toMatchObject([{ host, state: 'taken' }])
    expect([await answersAt(host, home), await answersAt(host, other)]).toEqual([true, false])
    await save(home, second)
    expect(await answersAt(host, home)).toBeFalse()
    expect((await save(home, host)).body.hosts).toMatchObject([{ state: 'unproven' }])
  })

  test('a website without hosts, or on the caller’s own machine, is told nothing of hosts', async () => {
    const home = await house()
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
      const home = await house()
      const own = freeHost()
      Object.assign(config, { ATOLL_HOST_CLAIMS: mode, ATOLL_PUBLIC_HOSTS: `first.example, ${own.toUpperCase()}` })
      const { status, body } = await save(home, ...addresses, ...machines, own)
      expect(status).toBe(200)
      await settle(home)
      expect(await hostsOf(home)).toEqual([`${home.id}.test`])
      const states = new Map(body.hosts.map((one: { host: string; state: string }) => [one.host, one.state]))
      expect(states.get(own)).toBe('taken')
      expect(states.get('10.1.2.3')).toBe('unproven')
    },
  )
})

describe('with ATOLL_HOST_CLAIMS=dns', () => {
  let names: Awaited<ReturnType<typeof startNameserver>>
  beforeAll(async () => {
    names = await startNameserver({})
    config.ATOLL_DNS_SERVERS = names.address
  })
  afterAll(() => {
    names.stop()
    config.ATOLL_DNS_SERVERS = ''
  })
  beforeEach(() => {
    config.ATOLL_HOST_CLAIMS = 'dns'
  })
  const prove = (home: House, host: string) => {
    names.texts[`_atoll.${host}`] = ['v=spf1 -all', `atoll-tenant=${home.id}`]
  }
  const runChores = async (home: House) => {
    const tenant = await tenantNamed(home.id)
    const signal = new AbortController().signal
    for (const chore of chores.slice(-3, -1)) await chore({ ...tenant, signal, require: async () => {} } as never)
  }

  test('a host is served once its TXT record names the tenant', async () => {
    const home = await house()
    const host = freeHost()
    const { body } = await save(home, host)
    const record = { type: 'TXT', name: `_atoll.${host}`, value: `atoll-tenant=${home.id}` }
    expect(body.hosts).toEqual([{ host, state: 'unproven', message: expect.stringContaining(record.value), record }])
    expect(await answersAt(host, home)).toBeFalse()
    prove(home, host)
    expect((await save(home, host)).body.hosts).toEqual([{ host, state: 'served' }])
    expect(await answersAt(host, home)).toBeTrue()
    // The website leaves, and so does the host.
    await save(home)
    expect(await answersAt(host, home)).toBeFalse()
  })

  test('a record that comes later is found by the housekeeping', async () => {
    const home = await house()
    const host = freeHost()
    await save(home, host)
    const before = await version()
    await runChores(home)
    expect([await answersAt(host, home), await version()]).toEqual([false, before])
    prove(home, host)
    await runChores(home)
    expect(await answersAt(host, home)).toBeTrue()
  })

  test.each([
    ['of another tenant', ['atoll-tenant=other']],
    ['that only begins like it', ['atoll-tenant=']],
    ['of nothing', []],
    ['that cannot be read', 'broken'],
  ] as const)('a record %s proves nothing', async (_, texts) => {
    const home = await house()
    const host = freeHost()
    names.texts[`_atoll.${host}`] = texts === 'broken' ? texts : texts.map((text) => `${text}`)
    expect((await save(home, host)).body.hosts).toMatchObject([{ state: 'unproven' }])
    expect(await answersAt(host, home)).toBeFalse()
  })

  test('what another tenant has is not taken from it by a record', async () => {
    const [home, other] = [await house(), await house()]
    const host = `${other.id}.test`
    prove(home, host)
    expect((await save(home, host)).body.hosts).toMatchObject([{ host, state: 'taken' }])
    expect(await answersAt(host, other)).toBeTrue()
  })

  test('a record that is gone for three days takes the host away, and not before', async () => {
    const home = await house()
    const host = freeHost()
    prove(home, host)
    await save(home, host)
    const dayLater = async () => {
      moveClock(now() + DAY + 1_000)
      await checkProvenHosts()
      return answersAt(host, home)
    }
    expect(await dayLater()).toBeTrue()
    delete names.texts[`_atoll.${host}`]
    expect([await dayLater(), await dayLater()]).toEqual([true, true])
    prove(home, host)
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
    prove(home, host)
    await runChores(home)
    expect(await answersAt(host, home)).toBeTrue()
  })

  test('a record is looked at once a day', async () => {
    const home = await house()
    const host = freeHost()
    prove(home, host)
    await save(home, host)
    const looked = () => names.asked.filter((name) => name === `_atoll.${host}`).length
    const before = looked()
    await runChores(home)
    await checkProvenHosts()
    await save(home, host)
    expect(looked()).toBe(before)
    moveClock(now() + DAY + 1_000)
    await Promise.all([checkProvenHosts(home.id), runChores(home)])
    await checkProvenHosts()
    expect(looked() - before).toBeWithin(1, 3)
  })

  test('a host that the operator gave stays whatever its record says', async () => {
    const home = await house()
    const host = freeHost()
    prove(home, host)
    await save(home, host)
    await setHosts(home.id, [host, `${home.id}.test`])
    delete names.texts[`_atoll.${host}`]
    for (let day = 0; day < 5; day++) {
      moveClock(now() + DAY + 1_000)
      await checkProvenHosts()
    }
    expect(await answersAt(host, home)).toBeTrue()
  })

  test('a real server asks the servers of ATOLL_DNS_SERVERS', async () => {
    const id = `d${crypto.randomUUID().slice(0, 8)}`
    const env = {
      ATOLL_HOST_CLAIMS: 'dns',
      ATOLL_DNS_SERVERS: names.address,
      ATOLL_DATABASE_URL: config.ATOLL_DATABASE_URL,
    }
    const place = { at: emptyFolder(), env }
    await makeTenant(place, id)
    await using server = await serve(place)
    const call = caller(server.url, await signIn(server.url, id))
    const [proven, unproven] = [freeHost(), freeHost()]
    names.texts[`_atoll.${proven}`] = [`atoll-tenant=${id}`]
    const websiteUrls = [`https://${proven}`, `https://${unproven}`]
    const { status } = await call('PUT', `/api${APP}`, { websiteUrls })
    expect(status).toBe(200)
    expect(names.asked).toContain(`_atoll.${unproven}`)
    const { body } = await caller(server.url, { host: proven })('GET', `/api${APP}`)
    expect(body.metadata).toEqual({ websiteUrls })
  })
})

test('settling what agrees already leaves the registry alone', async () => {
  const home = await house()
  await save(home, freeHost(), freeHost())
  const before = await version()
  await settle(home)
  expect(await version()).toEqual(before)
})
