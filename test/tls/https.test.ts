import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { renameSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { join } from 'node:path'
import { type Listener, ListenFailure, openPorts, redirectToHttps } from '../../src/commands/listener'
import { config, readConfig } from '../../src/config'
import { setServer } from '../../src/tenancy/client-connection'
import { readCertificateFiles } from '../../src/tls/certificate-files'
import { openStream } from '../entities/changes/stream-client'
import { createAuthority } from '../fakes/certificate-authority'
import { createTempFolder } from '../fakes/cli'
import { findFreePort } from '../fakes/pebble'
import { connectTls, fetchCertificate } from '../fakes/tls-client'
import { callApi, createTestTenant } from '../test-tenant'
import { waitUntil } from '../wait-until'

const settings = { ...config }
const folder = createTempFolder()
const [chainFile, keyFile] = [join(folder, 'chain.pem'), join(folder, 'key.pem')]

let authority: Awaited<ReturnType<typeof createAuthority>>
let listener: Listener
let t: Awaited<ReturnType<typeof createTestTenant>>
let port: number

/** Puts files in the place of others, as programs that renew certificates do. */
function replaceFile(file: string, text: string) {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}
async function replaceCertificate(hosts: string[]) {
  const { chain, key } = await authority.issue(hosts)
  replaceFile(chainFile, chain)
  replaceFile(keyFile, key)
}
const nameAt = async (host?: string) => (await fetchCertificate(port, host)).subject.CN
const askOperator = async (path: string) => {
  const headers = { authorization: `Bearer ${config.ATOLL_OPERATOR_TOKEN}` }
  return (await callApi('GET', `http://localhost/operator${path}`, { headers })).body
}
const listCertificates = () => askOperator('/certificates')

beforeAll(async () => {
  authority = await createAuthority()
  t = await createTestTenant()
  const other = await authority.issue(['*.other.test'])
  writeFileSync(join(folder, 'other.pem'), other.chain)
  writeFileSync(join(folder, 'other-key.pem'), other.key)
  await replaceCertificate(['first.test', `${t.id}.test`])
  port = await findFreePort()
  Object.assign(config, {
    ...{ ATOLL_PORT: port, ATOLL_HTTP_PORT: 0, ATOLL_OPERATOR_TOKEN: 'token-of-the-operator' },
    ATOLL_TLS_CERT: `${chainFile}, ${join(folder, 'other.pem')}`,
    ATOLL_TLS_KEY: `${keyFile}, ${join(folder, 'other-key.pem')}`,
  })
  listener = await openPorts()
})
afterAll(async () => {
  await listener.stop(true)
  setServer(undefined)
  Object.assign(config, settings)
})

describe('a server with certificate files', () => {
  test('a client is offered the certificate of the name that it asks for, else the first one', async () => {
    expect(listener.url).toBe(`https://127.0.0.1:${port}`)
    expect(await nameAt('first.test')).toBe('first.test')
    expect(await nameAt('a.other.test')).toBe('*.other.test')
    expect(await nameAt('unknown.test')).toBe('first.test')
    expect(await nameAt()).toBe('first.test')
    expect(await listCertificates()).toMatchObject([
      { host: 'first.test', source: 'file', state: 'issued', issuer: 'Test authority', problem: null, next: null },
      { host: `${t.id}.test` },
      { host: '*.other.test' },
    ])
  })

  test('a request over TLS gets HSTS and a __Host- cookie, and its links begin with https', async () => {
    const origin = `https://${t.id}.test:${port}`
    const headers = { host: `${t.id}.test:${port}`, 'content-type': 'application/json' }
    const init = { headers, tls: { ca: authority.root, serverName: `${t.id}.test` } }
    const body = JSON.stringify({ username: 'ada', password: 'correct horse' })
    const answer = await fetch(`https://127.0.0.1:${port}/api/signup`, { ...init, method: 'POST', body })
    expect(answer.status).toBe(201)
    expect(answer.headers.get('strict-transport-security')).toStartWith('max-age=')
    expect(answer.headers.getSetCookie()[0]).toMatch(new RegExp(`^__Host-atoll_${t.id}=.*; Secure`))
    const id = `t${crypto.randomUUID()}`
    const created = await fetch(`https://127.0.0.1:${port}/operator/tenants`, {
      ...{ ...init, method: 'POST', body: JSON.stringify({ id }) },
      headers: { ...headers, authorization: `Bearer ${config.ATOLL_OPERATOR_TOKEN}` },
    })
    expect(((await created.json()) as { setUpLink: string }).setUpLink).toStartWith(`${origin}/admin/set-up`)
  })

  describe('HTTP/2', () => {
    let session: ClientHttp2Session | undefined
    afterEach(() => session?.destroy())

    test('a request by HTTP/2 reaches the tenant of its host, with its body, and gets streams', async () => {
      session = connect(`https://127.0.0.1:${port}`, { ca: authority.root, servername: `${t.id}.test` })
      const send = async (method: string, path: string, body?: string) => {
        const headers = { 'x-api-key': t.tokens.admin, ...(body && { 'content-type': 'application/json' }) }
        const authority = `${t.id}.test:${port}`
        const stream = session!.request({ ':method': method, ':path': path, ':authority': authority, ...headers })
        const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
        stream.on('response', resolve).on('error', reject)
        stream.end(body)
        const { ':status': status } = await promise
        const chunk = await new Promise<Buffer>((done) => stream.once('data', done))
        stream.close()
        return [status, chunk.toString()]
      }
      const [status, profile] = await send('GET', '/api/me')
      expect([status, JSON.parse(`${profile}`).username]).toEqual([200, 'admin'])
      const things = JSON.stringify({ key: 'things', name: 'Things', fields: [{ key: 'n', type: 'integer' }] })
      expect((await send('POST', '/api/blueprints', things))[0]).toBe(201)
      const [code, event] = await send('GET', '/api/blueprints/things/entities/changes')
      expect([code, event]).toEqual([200, expect.stringContaining('event:')])
    })
  })

  test('new files are offered to new connections, while requests and streams that are under way go on', async () => {
    const admin = t.as('admin')
    await admin.post('/blueprints', { key: 'lists', name: 'Lists', fields: [{ key: 'n', type: 'integer' }] })
    const secure = { tls: { rejectUnauthorized: false } }
    const url = `https://127.0.0.1:${port}/api/blueprints/lists/entities`
    const own = { tenant: t.id, 'x-api-key': t.tokens.admin }
    await using follower = await openStream(`${url}/changes`, own, secure)
    await follower.next()

    const socket = await connectTls(port)
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    const body = JSON.stringify({ identifier: 'late', n: 1 })
    const head = Object.entries({
      ...own,
      host: 'x',
      'content-type': 'application/json',
      'content-length': body.length,
    })
    const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    socket.write(`POST /api/blueprints/lists/entities HTTP/1.1\r\n${lines}\r\n${body.slice(0, 5)}`)
    await waitUntil(() => listener.pendingRequests >= 2)

    await replaceCertificate(['second.test'])
    await waitUntil(nameAt, (name) => name === 'second.test')
    await Bun.sleep(100) // the server before has stopped listening
    for (let n = 0; n < 10; n++) expect(await nameAt()).toBe('second.test')

    socket.write(body.slice(5))
    await waitUntil(
      () => answer,
      (text) => text.startsWith('HTTP/1.1 201'),
    )
    expect(await follower.take(1)).toEqual(['create late'])
    socket.destroy()
  })

  test('broken files are reported, and the certificate before stays in use until they are repaired', async () => {
    const before = await nameAt()
    writeFileSync(chainFile, 'nonsense')
    const [broken] = await waitUntil(listCertificates, ([first]) => first.problem)
    const flaw = 'the certificate is not a PEM text that begins with the certificate of the host'
    expect(broken).toMatchObject({
      ...{ host: before, state: 'failing' },
      problem: `${chainFile} and ${keyFile} cannot be used: ${flaw}.`,
    })
    expect(await nameAt()).toBe(before)
    const health = await askOperator('/health')
    expect(health.checks).toContainEqual({ check: 'certificate files', ok: false, message: broken.problem })
    await replaceCertificate(['third.test'])
    await waitUntil(nameAt, (name) => name === 'third.test')
    expect((await listCertificates())[0]).toMatchObject({ host: 'third.test', state: 'issued', problem: null })
  })

  test('health warns of a file that expires within two weeks', async () => {
    const { chain, key } = await authority.issue(['soon.test'], { to: 13 * 86_400_000 })
    replaceFile(chainFile, chain)
    replaceFile(keyFile, key)
    const { checks } = await askOperator('/health')
    expect(checks).toContainEqual({
      ...{ check: 'certificate file of soon.test', ok: false },
      message: expect.stringMatching(/^expires at .*; replace it/),
    })
    expect(checks).toContainEqual({
      ...{ check: 'certificate file of *.other.test', ok: true },
      message: expect.stringMatching(/^expires at \S+$/),
    })
  })

  test('another server at the same port is refused', async () => {
    const failure = await openPorts().catch((error) => error)
    expect(failure).toBeInstanceOf(ListenFailure)
    expect(failure).toMatchObject({ setting: 'ATOLL_PORT', port, cause: { code: 'EADDRINUSE' } })
  })
})

test('files that cannot be used are named with the reason', async () => {
  const [one, other] = [await authority.issue(['a.test']), await authority.issue(['b.test'])]
  const at = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const cases = [
    [join(folder, 'none.pem'), at('one', one.key), 'of ATOLL_TLS_CERT cannot be read: ENOENT.'],
    [at('c', one.chain), at('other', other.key), 'cannot be used: the private key belongs to another certificate.'],
    [at('c', one.chain), at('broken', 'x'), 'cannot be used: the private key is not a PEM text without a passphrase.'],
  ] as const
  const { ATOLL_TLS_CERT, ATOLL_TLS_KEY } = config
  for (const [certificate, key, message] of cases) {
    Object.assign(config, { ATOLL_TLS_CERT: certificate, ATOLL_TLS_KEY: key })
    const error = await readCertificateFiles().catch((cause: Error) => cause.message)
    expect(error).toEndWith(message)
  }
  Object.assign(config, { ATOLL_TLS_CERT, ATOLL_TLS_KEY })
})

test('a server that orders certificates listens on every address unless a setting names one', () => {
  const hostOf = (settings: Record<string, string>) => readConfig(settings, {}).values.ATOLL_HOST
  expect(hostOf({})).toBe('127.0.0.1')
  expect(hostOf({ ATOLL_ACME: 'on' })).toBe('0.0.0.0')
  expect(hostOf({ ATOLL_ACME: 'on', ATOLL_HOST: '::' })).toBe('::')
})

test('settings with a certificate but no key are refused', () => {
  expect(() => readConfig({ ATOLL_TLS_CERT: 'a.pem' }, {})).toThrow(
    'ATOLL_TLS_CERT and ATOLL_TLS_KEY must name the same number of files.',
  )
})

test.each([
  ['a.test', '/x?y=1', 80, 443, 'https://a.test/x?y=1'],
  ['a.test:80', '/', 80, 443, 'https://a.test/'],
  ['a.test', '/', 80, 8443, 'https://a.test:8443/'],
  ['a.test', '/', 8080, 8443, 'https://a.test/'],
  ['a.test:8080', '/', 8080, 8443, 'https://a.test:8443/'],
  ['[::1]', '//evil.test', 80, 443, 'https://[::1]//evil.test'],
])('plain HTTP at %s%s on port %i redirects to HTTPS on port %i by %s', (host, path, port, httpsPort, location) => {
  const response = redirectToHttps(new Request(`http://any.test${path}`, { headers: { host } }), port, httpsPort)
  expect([response.status, response.headers.get('location')]).toEqual([308, location])
})
