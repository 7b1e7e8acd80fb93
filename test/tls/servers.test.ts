import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { withLease } from '../../src/jobs/with-lease'
import { registry } from '../../src/tenancy/registry'
import { createTenant } from '../../src/tenancy/tenants'
import { orderDueCertificates } from '../../src/tls/certificate-orders'
import { createTempFolder, createTenantByCli, runAtoll, startAtoll } from '../fakes/cli'
import { startDnsServer } from '../fakes/dns-server'
import { findFreePort, hasPebble, startPebble } from '../fakes/pebble'
import { fetchCertificate } from '../fakes/tls-client'
import { databaseUrl } from '../storage/engines'
import { waitUntil } from '../wait-until'
import { forgetHosts } from './host-fixtures'

setDefaultTimeout(60_000)

const VALIDITY_S = 3_600

/** Starts an ACME authority whose hosts lead to a free port of this machine; returns it with the settings of a server. */
async function startAuthority(addresses: Record<string, string[][]>) {
  const dns = await startDnsServer(addresses)
  const httpPort = await findFreePort()
  const pebble = await startPebble({ httpPort, dnsServer: dns.address, validity: VALIDITY_S })
  const settings = {
    ...{ ATOLL_ACME: 'on', ATOLL_ACME_DIRECTORY: pebble.directory, ATOLL_ACME_CA: pebble.caFile },
    ATOLL_DNS_SERVERS: dns.address,
  }
  return {
    settings,
    env: { ...settings, ATOLL_HOST: '127.0.0.1', ATOLL_HTTP_PORT: `${httpPort}` },
    http: `http://127.0.0.1:${httpPort}`,
    async [Symbol.asyncDispose]() {
      dns.stop()
      await pebble[Symbol.asyncDispose]()
    },
  }
}

describe.skipIf(!hasPebble || !!databaseUrl)('a server that orders certificates', () => {
  test.each([1, ...(process.platform === 'linux' ? [2] : [])])(
    '%i processes serve the host of a tenant by HTTPS soon after the start, and answer challenges while they drain',
    async (processes) => {
      await using authority = await startAuthority({ 'acme.test': [['127.0.0.1']] })
      const at = { at: createTempFolder(), env: { ...authority.env, ATOLL_DRAIN: '1', ATOLL_WORKERS: `${processes}` } }
      await createTenantByCli(at, 'acme')
      await using server = await startAtoll(at)
      expect(server.url).toStartWith('https://127.0.0.1:')
      const nameAt = async () => (await fetchCertificate(server.port, 'acme.test')).subjectaltname
      const namesAt = () => Promise.all(Array.from({ length: 4 * processes }, nameAt))
      await waitUntil(namesAt, (names) => names.every((name) => name === 'DNS:acme.test'))
      const doctor = await runAtoll('doctor', at)
      expect([doctor.code, doctor.out]).toEqual([0, expect.stringContaining('1 issued, 0 to be ordered, 0 failing')])

      const insecure = { tls: { rejectUnauthorized: false } }
      const readiness = () => fetch(`${server.url}/ready`, insecure).then(({ status }) => status)
      const ended = server.end('SIGTERM')
      expect(await waitUntil(readiness, (status) => status === 503)).toBe(503)
      expect((await fetch(`${authority.http}/.well-known/acme-challenge/unknown`)).status).toBe(404)
      expect((await fetch(authority.http, { redirect: 'manual' })).status).toBe(308)
      expect(await ended).toBe(0)
    },
  )
})

test.skipIf(!!databaseUrl)(
  'an external account without its key, or with one that is not Base64, is refused at the start',
  async () => {
    for (const [env, sentence] of [
      [{ ATOLL_ACME_EAB_KEY_ID: 'kid-1' }, 'ATOLL_ACME_EAB_KEY_ID and ATOLL_ACME_EAB_HMAC_KEY must be set together.'],
      [{ ATOLL_ACME_EAB_HMAC_KEY: 'a-key' }, 'must be set together'],
      [
        { ATOLL_ACME_EAB_KEY_ID: 'kid-1', ATOLL_ACME_EAB_HMAC_KEY: 'not a key' },
        'Invalid value for ATOLL_ACME_EAB_HMAC_KEY in the environment',
      ],
    ] as const) {
      const { code, err } = await runAtoll('serve', { at: createTempFolder(), env })
      expect([code, err]).toEqual([2, expect.stringContaining(sentence)])
      expect(err).not.toContain('not a key')
    }
  },
)

test.skipIf(!!databaseUrl)('a server whose certificate files are missing does not start, and says which', async () => {
  const env = { ATOLL_TLS_CERT: '/none/chain.pem', ATOLL_TLS_KEY: '/none/key.pem' }
  const { code, err } = await runAtoll('serve', { at: createTempFolder(), env })
  expect([code, err]).toEqual([
    2,
    expect.stringContaining('"/none/chain.pem" of ATOLL_TLS_CERT cannot be read: ENOENT.'),
  ])
})

describe.skipIf(!hasPebble || !databaseUrl)('servers that share a registry on PostgreSQL', () => {
  test('one server answers the challenge of another, and soon serves the certificate', async () => {
    await forgetHosts()
    const host = `h${crypto.randomUUID()}.test`
    await using authority = await startAuthority({ [host]: [['127.0.0.1']] })
    const env = { ...authority.env, ATOLL_DATABASE_URL: config.ATOLL_DATABASE_URL }
    await using server = await startAtoll({ at: createTempFolder(), env })
    await createTenant(`t${crypto.randomUUID()}`, [host])
    const before = { ...config }
    Object.assign(config, authority.settings)
    try {
      // This process has no port that the authority could reach.
      await waitUntil(
        () => withLease(registry, 'certificates', orderDueCertificates),
        ({ state }) => state === 'done',
      )
    } finally {
      Object.assign(config, before)
    }
    const nameAt = async () => (await fetchCertificate(server.port, host)).subjectaltname
    expect(await waitUntil(nameAt, (name) => name === `DNS:${host}`)).toBeTruthy()
  })
})
