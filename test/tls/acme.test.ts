import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { eq } from 'drizzle-orm'
import { type Listener, openPorts } from '../../src/commands/listener'
import { config } from '../../src/config'
import { DAY_MS, HOUR_MS, now, toIsoString } from '../../src/core/clock'
import { withLease } from '../../src/jobs/with-lease'
import { registry } from '../../src/tenancy/registry'
import { acmeAccounts, acmeChallenges, certificates, hosts, operatorEvents } from '../../src/tenancy/tables'
import { createTenant } from '../../src/tenancy/tenants'
import { AuthorityUnavailable, connectAuthority, orderCertificate } from '../../src/tls/acme-authority'
import { orderDueCertificates } from '../../src/tls/certificate-orders'
import { advanceClock, resetClock } from '../accounts/session-fixtures'
import { startDnsServer } from '../fakes/dns-server'
import { findFreePort, hasPebble, startPebble } from '../fakes/pebble'
import { fetchCertificate } from '../fakes/tls-client'
import { errorOf } from '../rejections'
import { callApi, statusAndCode } from '../test-tenant'
import { waitUntil } from '../wait-until'
import { forgetHosts } from './host-fixtures'

setDefaultTimeout(60_000)

const TOKEN = 'operator-token-of-this-test'
const VALIDITY_S = 3_600
const settings = { ...config }

const operator = (method: string, path: string) =>
  callApi(method, `http://localhost/operator${path}`, { headers: { authorization: `Bearer ${TOKEN}` } })

const orderDue = () => withLease(registry, 'certificates', orderDueCertificates)

describe.skipIf(!hasPebble)('certificates that are ordered', () => {
  const addresses: Record<string, string[][]> = {}
  let dns: Awaited<ReturnType<typeof startDnsServer>>
  let pebble: Awaited<ReturnType<typeof startPebble>>
  let listener: Listener
  let httpsPort: number

  beforeAll(async () => {
    dns = await startDnsServer(addresses)
    const [httpPort, port] = [await findFreePort(), await findFreePort()]
    pebble = await startPebble({ httpPort, dnsServer: dns.address, validity: VALIDITY_S })
    Object.assign(config, {
      ...{ ATOLL_ACME: 'on', ATOLL_ACME_DIRECTORY: pebble.directory, ATOLL_ACME_CA: pebble.caFile },
      ...{ ATOLL_PORT: port, ATOLL_HTTP_PORT: httpPort, ATOLL_DNS_SERVERS: dns.address, ATOLL_OPERATOR_TOKEN: TOKEN },
    })
    httpsPort = port
    listener = await openPorts()
  })
  beforeEach(async () => {
    await forgetHosts()
    await registry.write((tx) => tx.delete(certificates))
  })
  afterEach(resetClock)
  afterAll(async () => {
    Object.assign(config, settings)
    resetClock()
    await listener?.stop(true)
    dns?.stop()
    await pebble?.[Symbol.asyncDispose]()
  })

  const newHost = () => `h${crypto.randomUUID()}.test`
  const createTenantAt = async (host: string, address: string | undefined = '127.0.0.1') => {
    if (address) addresses[host] = [[address]]
    const id = `t${crypto.randomUUID()}`
    await createTenant(id, [host])
    return id
  }
  const findRow = (host: string) => registry.db.select().from(certificates).where(eq(certificates.host, host)).get()
  const findCertificate = async (host: string) => {
    const { body } = await operator('GET', '/certificates')
    return body.find((one: { host: string }) => one.host === host)
  }
  const servedName = async (host: string) => (await fetchCertificate(httpsPort, host)).subjectaltname

  test('a failed order whose next attempt a clock planned that was ahead is repeated when the clock is right', async () => {
    const host = newHost()
    await createTenantAt(host)
    const later = toIsoString(now() + 365 * DAY_MS)
    const failed = { host, due: later, attempted: later, failures: 3, problem: 'The order failed.' }
    await registry.write((tx) => tx.insert(certificates).values(failed))
    await orderDue()
    expect(await findRow(host)).toMatchObject({ chain: expect.stringContaining('CERTIFICATE'), failures: 0 })
  })

  test('the hosts of two tenants get certificates that clients trust, and are renewed when a third of their time is left', async () => {
    const hosts = [newHost(), newHost()]
    const ids = [await createTenantAt(hosts[0]!), await createTenantAt(hosts[1]!)]
    const placeholder = await fetchCertificate(httpsPort, hosts[0])
    expect(placeholder.subjectaltname).toBe('DNS:no-certificate.invalid')
    await orderDue()
    const ca = await pebble.fetchRoot()
    for (const [index, host] of hosts.entries()) {
      await waitUntil(
        () => servedName(host),
        (name) => name === `DNS:${host}`,
      )
      const url = `https://127.0.0.1:${httpsPort}/api/me`
      const trusting = { tls: { ca, serverName: host, checkServerIdentity: () => undefined }, headers: { host } }
      // The server before takes connections for a moment, too.
      const status = await waitUntil(() =>
        fetch(url, trusting).then(
          (answer) => answer.status,
          () => 0,
        ),
      )
      expect(status).toBe(401)
      expect(await findCertificate(host)).toMatchObject({
        ...{ tenant: ids[index], source: 'acme', state: 'issued', failures: 0, problem: null },
        issuer: expect.stringContaining('Pebble'),
      })
    }
    const first = await waitUntil(
      () => fetchCertificate(httpsPort, hosts[0]),
      ({ subjectaltname }) => subjectaltname === `DNS:${hosts[0]}`,
    )
    await orderDue()
    expect((await findRow(hosts[0]!))?.issued).toBe(new Date(first.valid_from).toISOString())
    advanceClock((VALIDITY_S * 1_000 * 2) / 3 + 5_000)
    await orderDue()
    resetClock()
    await waitUntil(
      () => fetchCertificate(httpsPort, hosts[0]),
      ({ serialNumber, subjectaltname }) =>
        serialNumber !== first.serialNumber && subjectaltname === first.subjectaltname,
    )
    expect(await registry.db.$count(acmeAccounts)).toBe(1)
    expect(await registry.db.$count(acmeChallenges)).toBe(0)
    const row = await findRow(hosts[0]!)
    expect(row?.key).not.toContain('PRIVATE')
  })

  test('a tenant that had half of the orders of an hour waits, and the hosts of another tenant are ordered', async () => {
    const [recent, due, another] = [Array.from({ length: 45 }, newHost), newHost(), newHost()]
    for (const host of [due, another]) addresses[host] = [['127.0.0.1']]
    await createTenant(`t${crypto.randomUUID()}`, [...recent, due])
    await createTenantAt(another)
    const [attempted, later] = [toIsoString(now()), toIsoString(now() + DAY_MS)]
    const rows = recent.map((host) => ({ host, due: later, attempted, failures: 0 }))
    await registry.write((tx) => tx.insert(certificates).values(rows))
    await orderDue()
    expect(await findRow(another)).toMatchObject({ chain: expect.stringContaining('CERTIFICATE') })
    expect(await findRow(due)).toMatchObject({ chain: null, attempted: null })
    advanceClock(HOUR_MS + 1_000)
    await orderDue()
    resetClock()
    expect(await findRow(due)).toMatchObject({ chain: expect.stringContaining('CERTIFICATE') })
  })

  test('names that no tenant has, and those that a tenant has only claimed, are not ordered', async () => {
    const [tenant, unknown, claimed] = [await createTenantAt(newHost(), ''), newHost(), newHost()]
    await registry.write((tx) => tx.insert(hosts).values({ host: claimed, tenant, given: false, claimed: 1 }))
    for (const host of [unknown, claimed]) {
      addresses[host] = [['127.0.0.1']]
      await fetchCertificate(httpsPort, host)
      await callApi('GET', `https://${host}/api/me`)
      await orderDue()
      expect(await findRow(host)).toBeUndefined()
      const refused = await operator('POST', `/certificates/${host}/renew`)
      expect(statusAndCode(refused)).toEqual([404, 'CERTIFICATE_NOT_FOUND'])
    }
  })

  test('a host that leads elsewhere fails with the reason, is tried later and later, and at once when the operator asks', async () => {
    const host = newHost()
    const id = await createTenantAt(host, '127.0.0.2')
    const waits: number[] = []
    for (const failures of [1, 2]) {
      await orderDue()
      const certificate = await findCertificate(host)
      expect(certificate).toMatchObject({ state: 'failing', failures, expires: null })
      expect(certificate.problem).toContain(host)
      waits.push(Math.round((Date.parse(certificate.next) - now()) / 60_000))
      expect((await operator('POST', `/certificates/${host}/renew`)).status).toBe(200)
    }
    expect(waits).toEqual([5, 20])
    const events = await registry.db.select().from(operatorEvents).where(eq(operatorEvents.tenant, id))
    expect(events.map(({ eventName }) => eventName).sort()).toEqual(['certificate-failed', 'tenant-created'])
    addresses[host] = [['127.0.0.1']]
    await orderDue()
    expect(await findCertificate(host)).toMatchObject({ state: 'issued', failures: 0, problem: null })
  })

  test('an account that the authority does not know any more is replaced', async () => {
    const host = newHost()
    await createTenantAt(host)
    await orderDue()
    await operator('POST', `/certificates/${host}/renew`)
    await registry.write((tx) =>
      tx.update(acmeAccounts).set({ url: new URL('/my-account/unknown', pebble.directory).href }),
    )
    await orderDue()
    expect(await findCertificate(host)).toMatchObject({ state: 'failing', failures: 1 })
    await operator('POST', `/certificates/${host}/renew`)
    await orderDue()
    expect(await findCertificate(host)).toMatchObject({ state: 'issued', failures: 0 })
  })

  const waits: [string, () => string][] = [
    ['seconds', () => '2'],
    ['a date', () => new Date(now() + 5_000).toUTCString()],
  ]
  test.each(waits)(
    'an authority that limits orders by %s gets none until then, and no host is blamed',
    async (_, wait) => {
      let requests = 0
      const answer = () => new Response(`${++requests}`, { status: 429, headers: { 'retry-after': wait() } })
      const busy = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
      const host = newHost()
      await createTenantAt(host)
      config.ATOLL_ACME_DIRECTORY = busy.url.href
      await orderDue()
      expect(await findCertificate(host)).toMatchObject({
        ...{ state: 'failing', failures: 0, attempted: null },
        problem: 'The ACME authority limits orders. Orders go on later.',
      })
      await operator('POST', `/certificates/${host}/renew`)
      await orderDue()
      expect(requests).toBe(1)
      await busy.stop(true)
      config.ATOLL_ACME_DIRECTORY = pebble.directory
      await waitUntil(async () => {
        await orderDue()
        return (await findCertificate(host)).state === 'issued'
      })
    },
  )

  /** An authority of which only the orders and the suggested renewals are not those of Pebble. */
  async function startAuthorityWithRenewals() {
    const directory = (await (
      await fetch(pebble.directory, { tls: { ca: readFileSync(pebble.caFile, 'utf8') } })
    ).json()) as object
    const orders: Record<string, unknown>[] = []
    const asked: string[] = []
    const state = { window: [0, 0] as [number, number] }
    const refuse = (status: number, type: string) =>
      Response.json({ type: `urn:ietf:params:acme:error:${type}`, detail: type }, { status })
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        const { pathname, origin } = new URL(request.url)
        const profiles = { shortlived: 'six days', classic: '90 days' }
        // Pebble and Boulder refuse requests without it, as RFC 8555 demands.
        if (!request.headers.get('user-agent')) return refuse(400, 'malformed')
        const own = { newOrder: `${origin}/order`, renewalInfo: `${origin}/renewal`, meta: { profiles } }
        if (pathname === '/') return Response.json({ ...directory, ...own })
        if (pathname === '/order') {
          const { payload } = (await request.json()) as { payload: string }
          const order = JSON.parse(`${Buffer.from(payload, 'base64url')}`)
          orders.push(order)
          return order.replaces ? refuse(409, 'alreadyReplaced') : refuse(403, 'rejectedIdentifier')
        }
        asked.push(pathname.slice('/renewal/'.length))
        const [start, end] = state.window.map((time) => new Date(time).toISOString())
        return Response.json({ suggestedWindow: { start, end } }, { headers: { 'retry-after': '60' } })
      },
    })
    config.ATOLL_ACME_DIRECTORY = server.url.href
    return {
      ...{ orders, asked, state },
      [Symbol.asyncDispose]: async () => {
        Object.assign(config, { ATOLL_ACME_DIRECTORY: pebble.directory, ATOLL_ACME_PROFILE: '' })
        await server.stop(true)
      },
    }
  }

  test('a renewal follows the window that the authority suggests, and names the certificate and the classic profile', async () => {
    const host = newHost()
    await createTenantAt(host)
    await orderDue()
    const { issued } = (await findRow(host))!
    await using authority = await startAuthorityWithRenewals()
    // Pebble was asked for a moment before.
    advanceClock(7 * HOUR_MS)
    await registry.write((tx) => tx.update(certificates).set({ due: toIsoString(now() + HOUR_MS) }))
    authority.state.window = [now() + 10 * 60_000, now() + 20 * 60_000]
    await orderDue()
    const { serialNumber } = new X509Certificate((await findRow(host))!.chain!)
    const [id = ''] = authority.asked
    expect(authority.asked).toHaveLength(1)
    expect(Buffer.from(id.split('.')[1]!, 'base64url').toString('hex').replace(/^00/, '')).toBe(
      serialNumber.toLowerCase(),
    )
    expect(Date.parse((await findRow(host))!.due)).toBeWithin(...authority.state.window)
    await orderDue()
    expect([authority.asked.length, authority.orders.length]).toEqual([1, 0])
    // A window that has passed means now.
    authority.state.window = [now() - 2_000, now() - 1_000]
    advanceClock(61_000)
    await orderDue()
    expect(authority.asked).toEqual([id, id])
    const identifiers = [{ type: 'dns', value: host }]
    expect(authority.orders).toEqual([
      { identifiers, profile: 'classic', replaces: id },
      { identifiers, profile: 'classic' },
    ])
    const row = await findRow(host)
    expect(row).toMatchObject({ issued, failures: 1 })
    // A twenty-fourth of an hour is less than five minutes.
    expect(Date.parse(row!.due) - now()).toBeWithin((VALIDITY_S * 1_000) / 24 - 20_000, (VALIDITY_S * 1_000) / 24 + 1)
  })

  test('the chosen profile is ordered, and one that the authority does not have is told with those that it has', async () => {
    const host = newHost()
    await createTenantAt(host)
    await using authority = await startAuthorityWithRenewals()
    config.ATOLL_ACME_PROFILE = 'unknown'
    expect((await errorOf(orderCertificate(await connectAuthority(), host))).message).toContain(
      'The ACME authority has no profile "unknown". Set ATOLL_ACME_PROFILE to one of these: shortlived, classic.',
    )
    config.ATOLL_ACME_PROFILE = 'shortlived'
    expect((await errorOf(orderCertificate(await connectAuthority(), host))).message).toContain('rejectedIdentifier')
    expect(authority.orders).toEqual([{ identifiers: [{ type: 'dns', value: host }], profile: 'shortlived' }])
  })

  test('an authority that refuses to show its directory is told with its status, and blames no host', async () => {
    const host = newHost()
    await createTenantAt(host)
    await using refusing = Bun.serve({ port: 0, fetch: () => new Response(null, { status: 404 }) })
    const client = await connectAuthority()
    config.ATOLL_ACME_DIRECTORY = refusing.url.href
    try {
      const error = await errorOf(orderCertificate(client, host))
      expect([error instanceof AuthorityUnavailable, error.message]).toEqual([
        true,
        'The ACME authority answers 404 for its directory. Check ATOLL_ACME_DIRECTORY. Orders go on later.',
      ])
    } finally {
      config.ATOLL_ACME_DIRECTORY = pebble.directory
    }
  })

  test('an authority that refuses most nonces still issues a certificate', async () => {
    const { ATOLL_HTTP_PORT: httpPort } = config
    const nonceRejection = 60 // percent
    await using strict = await startPebble({ httpPort, dnsServer: dns.address, validity: VALIDITY_S, nonceRejection })
    const before = { ...config }
    Object.assign(config, { ATOLL_ACME_DIRECTORY: strict.directory, ATOLL_ACME_CA: strict.caFile })
    const host = newHost()
    await createTenantAt(host)
    try {
      for (let n = 0; n < 3; n++) {
        await orderDue()
        expect(await findCertificate(host)).toMatchObject({ state: 'issued', failures: 0 })
        await operator('POST', `/certificates/${host}/renew`)
      }
    } finally {
      Object.assign(config, before)
    }
  })

  test('a host without an address is not ordered, and the reason says so', async () => {
    const host = newHost()
    await createTenantAt(host, '')
    await orderDue()
    expect(await findCertificate(host)).toMatchObject({
      ...{ state: 'failing', attempted: null },
      problem: 'The DNS has no address for this host yet.',
    })
  })

  test('an authority that requires an external account gets the right one, and the reason tells what is missing or wrong', async () => {
    const hmacKey = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')
    const { ATOLL_HTTP_PORT: httpPort } = config
    const externalAccounts = { 'kid-1': hmacKey }
    await using strict = await startPebble({ httpPort, dnsServer: dns.address, validity: VALIDITY_S, externalAccounts })
    const before = { ...config }
    const useAccount = (keyId: string, key: string) =>
      Object.assign(config, {
        ...{ ATOLL_ACME_DIRECTORY: strict.directory, ATOLL_ACME_CA: strict.caFile },
        ...{ ATOLL_ACME_EAB_KEY_ID: keyId, ATOLL_ACME_EAB_HMAC_KEY: key },
      })
    const count = () => registry.db.$count(acmeAccounts)
    const known = await count()
    try {
      for (const [keyId, key, advice] of [
        ['', '', 'If you have an account there, set its ATOLL_ACME_EAB_KEY_ID and ATOLL_ACME_EAB_HMAC_KEY.'],
        ['kid-1', hmacKey.replace(/^./, (letter) => (letter === 'A' ? 'B' : 'A')), 'Check ATOLL_ACME_EAB_KEY_ID'],
        ['kid-2', hmacKey, 'Check ATOLL_ACME_EAB_KEY_ID'],
      ] as const) {
        useAccount(keyId, key)
        const refusal: Error = await connectAuthority().then(
          () => expect.unreachable(),
          (error) => error,
        )
        expect(refusal).toBeInstanceOf(AuthorityUnavailable)
        expect(refusal.message).toMatch(/^The ACME authority refuses the account: .+\. Orders go on later\.$/)
        expect(refusal.message).toContain(advice)
        expect(await count()).toBe(known)
      }
      useAccount('kid-1', hmacKey)
      const hosts = [newHost(), newHost()]
      for (const host of hosts) {
        await createTenantAt(host)
        await orderDue()
        expect(await findCertificate(host)).toMatchObject({ state: 'issued', failures: 0, problem: null })
      }
      // The second order has used the account of the first one.
      expect(await count()).toBe(known + 1)
    } finally {
      Object.assign(config, before)
      await registry.write((tx) =>
        tx.delete(acmeAccounts).where(eq(acmeAccounts.directory, `${strict.directory} kid-1`)),
      )
    }
    expect(await count()).toBe(known)
  })

  test('plain HTTP redirects what is no challenge to HTTPS, and answers 404 to unknown challenges', async () => {
    const http = `http://127.0.0.1:${config.ATOLL_HTTP_PORT}`
    const ask = async (path: string, host: string) => {
      const answer = await fetch(`${http}${path}`, { redirect: 'manual', headers: { host } })
      return [answer.status, answer.headers.get('location')]
    }
    expect(await ask('/api/me?x=%2F', 'a.test')).toEqual([308, 'https://a.test/api/me?x=%2F'])
    expect(await ask('/x', `a.test:${config.ATOLL_HTTP_PORT}`)).toEqual([308, `https://a.test:${httpsPort}/x`])
    expect(await ask('/x', 'a.test/b@c')).toEqual([400, null])
    expect(await ask('/.well-known/acme-challenge/unknown', 'a.test')).toEqual([404, null])
  })
})
