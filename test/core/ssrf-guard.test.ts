// engine: sqlite
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { isIP } from 'node:net'
import fc from 'fast-check'
import { type FetchLimits, fetchExternal, type UpstreamUnreachable } from '../../src/core/http-client'
import { fetchExternalStream } from '../../src/core/http-stream'
import { ipVersionOf } from '../../src/core/ssrf-guard'
import { certificate, key } from '../fakes/certificate'
import { startDnsServer } from '../fakes/dns-server'
import { checkProperty } from '../property-runner'

setDefaultTimeout(30_000)

const PRIVATE_ADDRESSES = {
  'loop.test': '127.0.0.1',
  'ten.test': '10.0.0.1',
  'office.test': '192.168.0.1',
  'metadata.test': '169.254.169.254',
  'shared.test': '100.64.0.1',
  'nothing.test': '0.0.0.0',
  'loop6.test': '::1',
  'nothing6.test': '::',
  'mapped.test': '::ffff:127.0.0.1',
  'link.test': 'fe80::1',
  'local.test': 'fd00::1',
  'sixtofour.test': '2002:7f00:1::',
  'teredo.test': '2001:0:7f00::',
  'nat64.test': '64:ff9b::7f00:1',
  'many.test': 'ff02::1',
}
const dnsRecords: Record<string, string[][]> = {
  ...Object.fromEntries(Object.entries(PRIVATE_ADDRESSES).map(([name, address]) => [name, [[address]]])),
  'mixed.test': [['93.184.215.14', '10.0.0.1']],
  'later.test': [['127.0.0.2'], ['127.0.0.1']],
  'good.test': [['127.0.0.1']],
  'bad.test': [['127.0.0.1']],
  'second.test': [['127.0.0.3', '127.0.0.1']],
}

const receivedRequests: { place: string; method: string; headers: Headers; body: string }[] = []
const recordAt = (place: string) => async (request: Request) => {
  const { method, url } = request
  // The headers of a request cannot be read any more once it is answered.
  const headers = new Headers(request.headers)
  receivedRequests.push({ place, method, headers, body: await request.text() })
  const { host, searchParams } = new URL(url)
  const [to, status] = [searchParams.get('to'), Number(searchParams.get('status') ?? 302)]
  return to ? new Response('moved', { status, headers: { location: to } }) : new Response(`at ${host}`)
}
const startServer = (hostname: string, more = {}) =>
  Bun.serve({ hostname, port: 0, fetch: recordAt(hostname), ...more })
const server = startServer('127.0.0.1')
const { port } = server
const otherServer = startServer('127.0.0.2', { port })
const tlsServer = startServer('127.0.0.1', { tls: { key, cert: certificate } })

let nameserver: Awaited<ReturnType<typeof startDnsServer>>
let bounds: FetchLimits
beforeAll(async () => {
  nameserver = await startDnsServer(dnsRecords)
  const { resolve } = nameserver
  bounds = { tenant: 'core', timeout: 5_000, limit: 10_000, privateNetwork: false, http: true, redirects: 5, resolve }
})
afterAll(async () => {
  nameserver.stop()
  await Promise.all([server, otherServer, tlsServer].map((one) => one.stop(true)))
})

test('ipVersionOf finds the addresses that the runtime knows, and no others', () => {
  const hard = fc.string({ unit: fc.constantFrom(...'0127afG:.:.[]%/\n'), maxLength: 24 })
  const groups = fc.array(fc.constantFrom('', '0', '1f', '255', '01', '10000', '127.0.0.1'), { maxLength: 10 })
  const texts = fc.oneof(fc.ipV4(), fc.ipV6(), hard, ...[':', '.'].map((by) => groups.map((all) => all.join(by))))
  checkProperty(
    2_000,
    fc.property(texts, (text) => expect(ipVersionOf(text)).toBe((text.includes('%') ? 0 : isIP(text)) as 0)),
  )
})

const failureReasonOf = (work: Promise<Response>) =>
  work.then(
    ({ status }) => status,
    (error: UpstreamUnreachable) => error.reason,
  )
const fetchAsStream = async (url: string, limits: FetchLimits) => {
  const init = { method: 'GET', headers: new Headers(), body: null, signal: new AbortController().signal }
  const { body, ...head } = await fetchExternalStream(url, init, { ...limits, head: limits.timeout })
  return new Response(body, head)
}
const clients: [string, (url: string, more?: Partial<FetchLimits>) => Promise<Response>][] = [
  ['fetchExternal', (url, more) => fetchExternal(url, {}, { ...bounds, ...more })],
  ['fetchExternalStream', (url, more) => fetchAsStream(url, { ...bounds, ...more })],
]

test.each(clients)(
  '%s refuses every host name and every notation of an IP address that leads to a private address',
  async (_, get) => {
    const before = receivedRequests.length
    const written = [
      ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0x7f.0.0.1', '0177.0.0.1', '017700000001', '127.0.0.1.'],
      ...[
        '１２７.0.0.1',
        '127。0。0。1',
        '0',
        '[::1]',
        '[::]',
        '[::ffff:127.0.0.1]',
        '[::ffff:7f00:1]',
        '[::127.0.0.1]',
      ],
      ...['[0:0:0:0:0:ffff:7f00:0001]', '[2002:7f00:1::]', '[64:ff9b::7f00:1]', '[64:ff9b:1::7f00:1]', '[fe80::1]'],
      ...['[fd12:3456::1]', '[2001:0:7f00::]', 'localhost', 'LOCALHOST.', '10.0.0.1', '169.254.169.254', '[ff02::1]'],
    ]
    const hosts = [...written, ...Object.keys(dnsRecords), 'loop.test.', 'LOOP.test']
    for (const host of hosts)
      expect(await failureReasonOf(get(`http://${host}:${port}/`)), host).toBeOneOf(['refused', 'unreachable'])
    for (const host of Object.keys(PRIVATE_ADDRESSES))
      expect(await failureReasonOf(get(`http://${host}:${port}/`)), host).toBe('refused')
    for (const url of [
      ...[
        'http://[fe80::1%25lo]/',
        'http://user:secret@loop.test/',
        'file:///etc/passwd',
        'ftp://loop.test/',
        'data:,x',
      ],
      ...['gopher://127.0.0.1/', 'unix:/tmp/x', `http:127.0.0.1:${port}`, '//127.0.0.1/', 'http://', ''],
    ])
      expect(await failureReasonOf(get(url)), url).toBeOneOf(['refused', 'unreachable'])
    expect(receivedRequests.length).toBe(before)
  },
)

test.each(clients)('%s refuses http URLs unless the caller allows http', async (_, get) => {
  expect(await failureReasonOf(get(`http://93.184.215.14:${port}/`, { http: false }))).toBe('refused')
})

test.each(clients)('%s resolves an allowed private host once and sends its name in the Host header', async (_, get) => {
  nameserver.asked.length = 0
  const first = await get(`http://later.test:${port}/`, { privateNetwork: true })
  expect(nameserver.asked).toEqual(['later.test'])
  expect(await first.text()).toBe(`at later.test:${port}`)
  expect(receivedRequests.at(-1)!.headers.get('host')).toBe(`later.test:${port}`)
  const userinfo = get(`http://user:secret@later.test:${port}/`, { privateNetwork: true })
  expect(await failureReasonOf(userinfo)).toBe('refused')
})

test('a request connects to the address that was checked, even if the DNS record changes afterwards', async () => {
  dnsRecords['turning.test'] = [['127.0.0.2'], ['127.0.0.1']]
  await fetchExternal(`http://turning.test:${port}/`, {}, { ...bounds, privateNetwork: true })
  expect(receivedRequests.at(-1)!.place).toBe('127.0.0.2')
  expect(nameserver.asked.filter((name) => name === 'turning.test')).toHaveLength(1)
  // The DNS record has changed by now.
  await fetchExternal(`http://turning.test:${port}/`, {}, { ...bounds, privateNetwork: true })
  expect(receivedRequests.at(-1)!.place).toBe('127.0.0.1')
})

test('a request falls back to the next address of a host when the first one does not answer', async () => {
  const answer = await fetchExternal(`http://second.test:${port}/`, {}, { ...bounds, privateNetwork: true })
  expect(answer.status).toBe(200)
})

test('a TLS certificate that is untrusted or belongs to another name makes the host unreachable', async () => {
  const trusting = { ...bounds, privateNetwork: true, ca: certificate }
  const good = await fetchExternal(`https://good.test:${tlsServer.port}/`, {}, trusting)
  expect(await good.text()).toBe(`at good.test:${tlsServer.port}`)
  expect(await failureReasonOf(fetchExternal(`https://good.test.:${tlsServer.port}/`, {}, trusting))).toBe(200)
  expect(await failureReasonOf(fetchExternal(`https://bad.test:${tlsServer.port}/`, {}, trusting))).toBe('unreachable')
  expect(await failureReasonOf(fetchExternal(`https://127.0.0.1:${tlsServer.port}/`, {}, trusting))).toBe('unreachable')
  expect(
    await failureReasonOf(fetchExternal(`https://good.test:${tlsServer.port}/`, {}, { ...trusting, ca: undefined })),
  ).toBe('unreachable')
  expect(await failureReasonOf(fetchAsStream(`https://good.test:${tlsServer.port}/`, trusting))).toBe('unreachable')
})

test('the targets of redirects are checked like first addresses, and at most five redirects are followed', async () => {
  const allowing = { ...bounds, privateNetwork: true }
  const at = (to: string, status = 302) => `http://good.test:${port}/?status=${status}&to=${encodeURIComponent(to)}`
  const to = (target: string, init: RequestInit = {}, status = 302) => fetchExternal(at(target, status), init, allowing)
  expect(await (await to(`http://bad.test:${port}/x`)).text()).toBe(`at bad.test:${port}`)
  expect(await (await to('/x')).text()).toBe(`at good.test:${port}`)
  expect(await failureReasonOf(to('ftp://good.test/'))).toBe('refused')
  expect(await failureReasonOf(to('file:///etc/passwd'))).toBe('refused')
  expect(await failureReasonOf(to('http://user:secret@good.test/'))).toBe('refused')
  expect(await failureReasonOf(to('http://'))).toBe(302)
  expect(await failureReasonOf(fetchExternal(at('/x'), {}, { ...allowing, redirects: 0 }))).toBe(302)
  // As if the first address were public: the target of its redirect still is not.
  let checks = 0
  const privateAfterFirst = {
    ...allowing,
    get privateNetwork() {
      return checks++ === 0
    },
  }
  const before = receivedRequests.length
  expect(await failureReasonOf(fetchExternal(at(`http://bad.test:${port}/`), {}, privateAfterFirst))).toBe('refused')
  expect([checks, receivedRequests.length - before]).toEqual([2, 1])
  // Several redirects are followed, but not endlessly many.
  const chainOf = (left: number): string => (left ? at(chainOf(left - 1)) : at('/end'))
  expect((await fetchExternal(chainOf(3), {}, allowing)).status).toBe(200)
  expect((await fetchExternal(chainOf(6), {}, allowing)).status).toBe(302)
})

test('a redirect to another origin drops credentials, own headers and the body of a request', async () => {
  const allowing = { ...bounds, privateNetwork: true }
  const headers = {
    authorization: 'Bearer x',
    cookie: 'a=b',
    'x-api-key': 'k',
    'x-own': 'o',
    'content-type': 'a/b',
    accept: 'c/d',
  }
  const sent = async (to: string, status: number, init: RequestInit = { method: 'POST', body: 'secret' }) => {
    const before = receivedRequests.length
    const url = `http://good.test:${port}/?status=${status}&to=${encodeURIComponent(to)}`
    const response = await fetchExternal(url, { headers, ...init }, allowing)
    const last = receivedRequests.at(-1)!
    const receivedNames = Object.keys(headers).filter((name) => last.headers.has(name))
    return [response.status, receivedRequests.length - before, last.method, last.body, receivedNames.join(' ')]
  }
  const all = Object.keys(headers).join(' ')
  const [sameOrigin, otherOrigin] = ['/x', `http://bad.test:${port}/x`]
  expect(await sent(sameOrigin, 307)).toEqual([200, 2, 'POST', 'secret', all])
  expect(await sent(sameOrigin, 308)).toEqual([200, 2, 'POST', 'secret', all])
  expect(await sent(sameOrigin, 302)).toEqual([200, 2, 'GET', '', all.replace('content-type ', '')])
  expect(await sent(sameOrigin, 303)).toEqual([200, 2, 'GET', '', all.replace('content-type ', '')])
  expect(await sent(otherOrigin, 303)).toEqual([200, 2, 'GET', '', 'accept'])
  expect(await sent(otherOrigin, 302, {})).toEqual([200, 2, 'GET', '', 'accept'])
  // A redirect that would carry the body to another origin is not followed: it is the answer.
  expect(await sent(otherOrigin, 307)).toEqual([307, 1, 'POST', 'secret', all])
  expect(await sent(otherOrigin, 308, { method: 'DELETE' })).toEqual([308, 1, 'DELETE', '', all])
})
