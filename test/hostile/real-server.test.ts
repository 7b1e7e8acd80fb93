// engine: sqlite
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  parseStatus,
  type RunningAtoll,
  sendRaw,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { fullAccessRules } from '../test-tenant'

setDefaultTimeout(30_000)

const BODY_LIMIT_BYTES = 4_096
const runOptions = {
  at: createTempFolder(),
  env: { ATOLL_BODY_LIMIT: `${BODY_LIMIT_BYTES}`, ATOLL_TRUST_PROXY: 'on', ATOLL_RATE_LIMITS: 'on' },
}
let server: RunningAtoll

beforeAll(async () => {
  await createTenantByCli(runOptions, 'acme')
  server = await startAtoll(runOptions)
  const admin = apiCaller(server.url, await signIn(server.url, 'acme'))
  const permissions = fullAccessRules('tenant', 'user').map((rule) => ({ ...rule, guest: true }))
  for (const key of ['guestbook', 'polls']) {
    const made = await admin('POST', '/api/blueprints', { key, name: key, fields: [], permissions })
    expect(made.status).toBe(201)
  }
})
afterAll(() => server?.end('SIGKILL'))

test.each([
  '/api/blueprints/guestbook/entities',
  '/api/v1/blueprints/guestbook/entities',
  '/api/blueprints/%C3%A4/entities',
  '/api/v1/blueprints/%C3%A4/entities',
  '/api/blueprints/ä/entities',
  '/api/blueprints/%ff/entities',
  '/api/blueprints/%00/entities',
])('an endless body at %s is refused with 413 BODY_TOO_LARGE as soon as it is too large', async (path) => {
  const head = `POST ${path} HTTP/1.1\r\nHost: acme.test\r\nConnection: close\r\nContent-Type: application/json\r\n`
  const chunk = `1000\r\n${' '.repeat(4_096)}\r\n`
  // The final chunk is never sent.
  const answer = await sendRaw(server.port, [`${head}Transfer-Encoding: chunked\r\n\r\n`, chunk, chunk])
  expect(parseStatus(answer)).toBe(413)
  expect(answer).toContain('"code":"BODY_TOO_LARGE"')
})

/** Posts entities as guests from these IP addresses one after the other and returns the statuses. */
async function postAsGuests(key: string, addresses: string[]) {
  const statuses: number[] = []
  for (const address of addresses) {
    const headers = { tenant: 'acme', 'x-forwarded-for': address }
    statuses.push((await apiCaller(server.url, headers)('POST', `/api/blueprints/${key}/entities`, {})).status)
  }
  return statuses
}
const times = <T>(length: number, make: (n: number) => T) => Array.from({ length }, (_, n) => make(n))

test('guests of one IPv6 /64 network share a rate limit, and guests of other networks are not limited by it', async () => {
  const taken = await postAsGuests('guestbook', [
    ...times(5, (n) => `2001:db8:1:2::${n + 1}`),
    ...times(5, (n) => `2001:db8:1:2:a:b:c:${n + 1}`),
  ])
  expect(taken).toEqual(Array(10).fill(201))
  const more = ['2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2::', '192.0.2.9, 2001:db8:1:2::77']
  expect(await postAsGuests('guestbook', more)).toEqual([429, 429, 429])
  const others = ['2001:db8:1:3::1', '2001:db8:2:2::1', '2001:db8::1', '::1', '192.0.2.1', '192.0.2.2']
  expect(await postAsGuests('guestbook', others)).toEqual(others.map(() => 201))
})

test('IPv4 guests are rate-limited by the address that the proxy appends, not by addresses that they claim', async () => {
  const spoofedHeaders = times(11, (n) => `203.0.113.${n}, 198.51.100.7`)
  expect(await postAsGuests('polls', spoofedHeaders)).toEqual([...Array(10).fill(201), 429])
  expect(await postAsGuests('polls', ['198.51.100.8'])).toEqual([201])
})

test('only the owner can read the files of the data folder', () => {
  const folder = join(runOptions.at, 'tenants')
  const files = readdirSync(folder, { recursive: true }) as string[]
  for (const name of ['secrets.json', 'registry.db', 'acme', join('acme', 'data.db'), join('acme', 'data.db-wal')])
    expect(files).toContain(name)
  for (const file of ['', ...files]) expect(statSync(join(folder, file)).mode & 0o077, file).toBe(0)
})
