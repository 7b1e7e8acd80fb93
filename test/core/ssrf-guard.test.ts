import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type FetchLimits, fetchExternal, type UpstreamUnreachable } from '../../src/core/http-client'
import { fetchExternalStream } from '../../src/core/http-stream'
import { certificate, key } from '../fakes/certificate'
import { startDnsServer } from '../fakes/dns-server'

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
  // They are gone when it is answered.
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

const failureReasonOf = (work: Promise<Response>) =>
  work.then(
    ({ status }) => status,
    (error: UpstreamUnreachable) => error.reason,
  )
const fetchAsStream = async (url: string, reach: FetchLimits) => {
  const question = { method: 'GET', headers: new Headers(), body: null, signal: new AbortController().signal }
  const { body, ...head } = await fetchExternalStream(url, question, { ...reach, head: reach.timeout })
  return new Response(body, head)
}
const clients: [string, (url: string, more?: Partial<FetchLimits>) => Promise<Response>][] = [
  ['whole', (url, more) => fetchExternal(url, {}, { ...bounds, ...more })],
  ['as it comes', (url, more) => fetchAsStream(url, { ...bounds, ...more })],
]

test.each(clients)(
  'asked %s: no name leads to a neighbour, and no other way to write an address does',
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

test.each(clients)('asked %s: nothing but https, unless the caller allows it', async (_, get) => {
  expect(await failureReasonOf(get(`http://93.184.215.14:${port}/`, { http: false }))).toBe('refused')
})

test.each(clients)(
  'asked %s: whom an operator lets in is asked at the address that was found, by its name',
  async (_, get) => {
    nameserver.asked.length = 0
    const first = await get(`http://later.test:${port}/`, { privateNetwork: true })
    expect(nameserver.asked).toEqual(['later.test'])
    expect(await first.text()).toBe(`at later.test:${port}`)
    expect(receivedRequests.at(-1)!.headers.get('host')).toBe(`later.test:${port}`)
    const userinfo = get(`http://user:secret@later.test:${port}/`, { privateNetwork: true })
    expect(await failureReasonOf(userinfo)).toBe('refused')
  },
)

test('what a name meant when it was looked at is where it leads, whatever it means a moment later', async () => {
  dnsRecords['turning.test'] = [['127.0.0.2'], ['127.0.0.1']]
  await fetchExternal(`http://turning.test:${port}/`, {}, { ...bounds, privateNetwork: true })
  expect(receivedRequests.at(-1)!.place).toBe('127.0.0.2')
  expect(nameserver.asked.filter((name) => name === 'turning.test')).toHaveLength(1)
  // The name has turned by now.
  await fetchExternal(`http://turning.test:${port}/`, {}, { ...bounds, privateNetwork: true })
  expect(receivedRequests.at(-1)!.place).toBe('127.0.0.1')
})

test('the first address that somebody is at is the one', async () => {
  const answer = await fetchExternal(`http://second.test:${port}/`, {}, { ...bounds, privateNetwork: true })
  expect(answer.status).toBe(200)
})

test('a certificate has to be that of the name', async () => {
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

test('redirections are looked at as addresses are', async () => {
  const lets = { ...bounds, privateNetwork: true }
  const at = (to: string, status = 302) => `http://good.test:${port}/?status=${status}&to=${encodeURIComponent(to)}`
  const to = (target: string, init: RequestInit = {}, status = 302) => fetchExternal(at(target, status), init, lets)
  expect(await (await to(`http://bad.test:${port}/x`)).text()).toBe(`at bad.test:${port}`)
  expect(await (await to('/x')).text()).toBe(`at good.test:${port}`)
  expect(await failureReasonOf(to('ftp://good.test/'))).toBe('refused')
  expect(await failureReasonOf(to('file:///etc/passwd'))).toBe('refused')
  expect(await failureReasonOf(to('http://user:secret@good.test/'))).toBe('refused')
  expect(await failureReasonOf(to('http://'))).toBe(302)
  expect(await failureReasonOf(fetchExternal(at('/x'), {}, { ...lets, redirects: 0 }))).toBe(302)
  // As if the first were public: its neighbour still is not.
  let looks = 0
  const leading = {
    ...lets,
    get privateNetwork() {
      return looks++ === 0
    },
  }
  const before = receivedRequests.length
  expect(await failureReasonOf(fetchExternal(at(`http://bad.test:${port}/`), {}, leading))).toBe('refused')
  expect([looks, receivedRequests.length - before]).toEqual([2, 1])
  // One after the other, but not forever.
  const round = (left: number): string => (left ? at(round(left - 1)) : at('/end'))
  expect((await fetchExternal(round(3), {}, lets)).status).toBe(200)
  expect((await fetchExternal(round(6), {}, lets)).status).toBe(302)
})

test('what was meant for one server is not carried to another', async () => {
  const lets = { ...bounds, privateNetwork: true }
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
    const response = await fetchExternal(url, { headers, ...init }, lets)
    const last = receivedRequests.at(-1)!
    const told = Object.keys(headers).filter((name) => last.headers.has(name))
    return [response.status, receivedRequests.length - before, last.method, last.body, told.join(' ')]
  }
  const all = Object.keys(headers).join(' ')
  const [here, there] = ['/x', `http://bad.test:${port}/x`]
  expect(await sent(here, 307)).toEqual([200, 2, 'POST', 'secret', all])
  expect(await sent(here, 308)).toEqual([200, 2, 'POST', 'secret', all])
  expect(await sent(here, 302)).toEqual([200, 2, 'GET', '', all.replace('content-type ', '')])
  expect(await sent(here, 303)).toEqual([200, 2, 'GET', '', all.replace('content-type ', '')])
  expect(await sent(there, 303)).toEqual([200, 2, 'GET', '', 'accept'])
  expect(await sent(there, 302, {})).toEqual([200, 2, 'GET', '', 'accept'])
  // Nobody else gets the body: the redirection is the answer.
  expect(await sent(there, 307)).toEqual([307, 1, 'POST', 'secret', all])
  expect(await sent(there, 308, { method: 'DELETE' })).toEqual([308, 1, 'DELETE', '', all])
})
