// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeBlocksOf } from '../documents/markdown'
import { openStream } from '../entities/changes/stream-client'
import { hasBrowser, launchBrowser } from '../fakes/browser'
import { createAuthority } from '../fakes/certificate-authority'
import { createTempFolder, createTenantByCli, PASSWORD, type RunningAtoll, signIn, startAtoll } from '../fakes/cli'
import { findFreePort } from '../fakes/pebble'
import { databaseUrl } from '../storage/engines'
import { waitUntil } from '../wait-until'

setDefaultTimeout(60_000)

const HOST = 'acme.test'
const FOREIGN_ADDRESS = '203.0.113.9'

/** Returns the documented configuration of a proxy, for the ports and files of a test. */
function readDocumented(language: string, replacements: [string | RegExp, string][]): string {
  const page = readFileSync(join(import.meta.dir, '../../docs/operations/tls.md'), 'utf8')
  const block = codeBlocksOf(page).find(({ info }) => info === language)
  return replacements.reduce((text, [from, to]) => {
    expect(text).toMatch(from)
    return text.replaceAll(from, to)
  }, block?.code ?? '')
}

const CHANGED_ETAG = /^(W\/"[\w-]+|"[\w-]+-(gzip|zstd))"$/

type Ports = { http: number; https: number; atoll: number }

/** The proxies that can be installed on Debian: how each is started with its documented configuration. */
const proxies = {
  nginx: async (folder: string, { http, https, atoll }: Ports) => {
    const { chain, key } = await (await createAuthority()).issue([HOST])
    writeFileSync(join(folder, 'chain.pem'), chain)
    writeFileSync(join(folder, 'key.pem'), key)
    const servers = readDocumented('nginx', [
      ['listen 80', `listen 127.0.0.1:${http}`],
      ['listen 443', `listen 127.0.0.1:${https}`],
      ['server_name acme.example.com', `server_name ${HOST}`],
      [/\/etc\/letsencrypt\S+fullchain\.pem/g, join(folder, 'chain.pem')],
      [/\/etc\/letsencrypt\S+privkey\.pem/g, join(folder, 'key.pem')],
      ['127.0.0.1:3000', `127.0.0.1:${atoll}`],
    ])
    const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/t;`)
    const http_ = `http { access_log off; ${paths.join(' ')}\n${servers}\n}`
    writeFileSync(join(folder, 'nginx.conf'), `daemon off; pid ${folder}/pid; events {}\n${http_}`)
    return ['-p', folder, '-e', join(folder, 'error.log'), '-c', join(folder, 'nginx.conf')]
  },
  caddy: async (folder: string, { http, https, atoll }: Ports) => {
    const sites = readDocumented('caddy', [
      ['acme.example.com, shop.example.com', HOST],
      ['127.0.0.1:3000', `127.0.0.1:${atoll}`],
    ])
    const options = ['admin off', `http_port ${http}`, `https_port ${https}`, 'local_certs', 'skip_install_trust']
    writeFileSync(join(folder, 'Caddyfile'), `{\n${options.join('\n')}\n}\n${sites}`)
    return ['run', '--config', join(folder, 'Caddyfile')]
  },
  haproxy: async (folder: string, { http, https, atoll }: Ports) => {
    const { chain, key } = await (await createAuthority()).issue([HOST])
    writeFileSync(join(folder, 'chain-and-key.pem'), `${chain}\n${key}`)
    const configuration = readDocumented('haproxy', [
      ['bind :80', `bind 127.0.0.1:${http}`],
      ['bind :443', `bind 127.0.0.1:${https}`],
      ['/etc/haproxy/certs/acme.example.com.pem', join(folder, 'chain-and-key.pem')],
      ['127.0.0.1:3000', `127.0.0.1:${atoll}`],
    ])
    writeFileSync(join(folder, 'haproxy.cfg'), configuration)
    return ['-db', '-f', join(folder, 'haproxy.cfg')]
  },
}

describe.each(Object.entries(proxies))('%s with its documented configuration', (name, configure) => {
  // What a proxy passes on depends on no database.
  const program = databaseUrl ? null : Bun.which(name, { PATH: `${process.env.PATH}:/usr/sbin` })
  if (!program) {
    if (!databaseUrl) console.warn(`SKIPPED: the tests of ${name}, which is not installed here.`)
    test.skip('the proxy is not installed', () => {})
    return
  }
  // Caddy leaves the ETag alone before 2.9, which Debian does not have yet.
  const changesEtags = name !== 'caddy' || !/^v?2\.[0-8]\./.test(Bun.spawnSync([program, 'version']).stdout.toString())
  const folder = createTempFolder()
  const at = { at: folder, env: { ATOLL_TRUST_PROXY: 'on', ATOLL_LOG_LEVEL: 'warn' } }
  let server: RunningAtoll
  let child: Bun.Subprocess
  let ports: Ports

  beforeAll(async () => {
    await createTenantByCli(at, 'acme')
    await createTenantByCli(at, 'other')
    server = await startAtoll(at)
    ports = { http: await findFreePort(), https: await findFreePort(), atoll: server.port }
    const args = await configure(folder, ports)
    const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
    child = Bun.spawn([program, ...args], { env, stdout: 'ignore', stderr: 'ignore' })
    const isReady = () =>
      send('/ready').then(
        ({ status }) => status === 200,
        () => false,
      )
    await waitUntil(isReady)
  })
  afterAll(async () => {
    child?.kill()
    await child?.exited
    await server?.end('SIGKILL')
  })

  const secure = { tls: { rejectUnauthorized: false, serverName: HOST } }
  const send = (path: string, init: BunFetchRequestInit = {}) =>
    fetch(`https://127.0.0.1:${ports.https}${path}`, {
      ...{ ...secure, ...init },
      headers: { host: `${HOST}:${ports.https}`, 'content-type': 'application/json', ...init.headers },
    })

  test('cookies are those of HTTPS, and what clients say of themselves in forwarding headers does not count', async () => {
    const body = JSON.stringify({ username: 'root', password: PASSWORD })
    const forged = { 'x-forwarded-for': FOREIGN_ADDRESS, 'x-forwarded-host': 'other.test', 'x-forwarded-proto': 'http' }
    const answer = await send('/api/signin', { method: 'POST', body, headers: forged })
    expect(answer.status).toBe(200)
    expect(answer.headers.getSetCookie()[0]).toMatch(/^__Host-atoll_acme=.*; Secure/)
    expect(answer.headers.get('strict-transport-security')).toStartWith('max-age=')
    expect((await send('/api/users', { headers: forged })).status).toBe(401)
  })

  test('plain HTTP is redirected to HTTPS', async () => {
    const answer = await fetch(`http://127.0.0.1:${ports.http}/api/me`, { headers: { host: HOST }, redirect: 'manual' })
    expect([answer.status, answer.headers.get('location')]).toEqual([308, expect.stringContaining(`https://${HOST}`)])
  })

  test('a stream is passed on event by event, and a large body reaches the limit of Atoll', async () => {
    const { authorization = '' } = await signIn(server.url, 'acme')
    const own = { authorization, host: `${HOST}:${ports.https}`, 'content-type': 'application/json' }
    const things = JSON.stringify({ key: 'things', name: 'Things', fields: [{ key: 'n', type: 'integer' }] })
    expect((await send('/api/blueprints', { method: 'POST', body: things, headers: own })).status).toBe(201)
    const url = `https://127.0.0.1:${ports.https}/api/blueprints/things/entities/changes`
    await using follower = await openStream(url, own, secure)
    await follower.next()
    const entity = JSON.stringify({ identifier: 'one', n: 1 })
    await send('/api/blueprints/things/entities', { method: 'POST', body: entity, headers: own })
    expect(await follower.take(1)).toEqual(['create one'])
    const large = JSON.stringify({ text: 'x'.repeat(2 << 20) })
    const refused = await send('/api/blueprints', { method: 'POST', body: large, headers: own })
    expect([refused.status, await refused.json()]).toMatchObject([413, { code: 'BODY_TOO_LARGE' }])
  })

  test('the ETag of a compressed answer changes and deletes what was read, and a stale one is refused', async () => {
    const own = await signIn(server.url, 'acme')
    const call = async (method: string, path: string, body?: unknown, headers = {}) => {
      const init = {
        method,
        headers: { ...own, ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }
      const answer = await send(`/api${path}`, init)
      return { status: answer.status, etag: answer.headers.get('etag'), body: (await answer.json()) as { _id: string } }
    }
    const long = 'a long text '.repeat(100)
    const create = async (path: string, body: object) => (await call('POST', path, body)).body
    await create('/blueprints', {
      key: 'notes',
      name: 'Notes',
      description: long,
      fields: [{ key: 'text', type: 'text' }],
    })
    await create('/blueprints/notes/entities', { identifier: 'one', text: long })
    await create('/configurations', { key: 'dashboard', description: long, metadata: { charts: [] } })
    const lambda = await create('/lambdas', { name: 'long', code: `export default () => 1 // ${long}` })
    const changes: [path: string, change: object][] = [
      ['/blueprints/notes/entities/one', { text: `${long}!` }],
      ['/blueprints/notes', { name: 'Other notes' }],
      ['/configurations/dashboard', { metadata: { charts: [{ title: 'Notes', blueprint: 'notes' }] } }],
      [`/lambdas/${lambda._id}`, { description: long }],
    ]
    for (const [path, change] of changes) {
      const read = await call('GET', path)
      if (changesEtags) expect(read.etag, path).toMatch(CHANGED_ETAG)
      expect((await send(`/api${path}`, { headers: { ...own, 'if-none-match': read.etag! } })).status, path).toBe(304)
      const ifRead = { 'if-match': read.etag }
      const changed = await call('PUT', path, change, ifRead)
      expect(changed, path).toMatchObject({ status: 200 })
      for (const method of ['PUT', 'DELETE'])
        expect(await call(method, path, change, ifRead), path).toMatchObject({
          status: 412,
          body: { code: 'VERSION_MISMATCH' },
        })
    }
    for (const [path] of changes) {
      const { etag } = await call('GET', path)
      expect((await call('DELETE', path, undefined, { 'if-match': etag })).status, path).toBe(200)
    }
  })

  test('definitions are pushed after they were read compressed, and stale ones are refused', async () => {
    const own = await signIn(server.url, 'acme')
    const post = async (path: string, body: object) => {
      const answer = await send(path, { method: 'POST', headers: own, body: JSON.stringify(body) })
      return { status: answer.status, body: (await answer.json()) as { versions: object } }
    }
    const definition = { key: 'pushed', name: 'Pushed', description: 'long '.repeat(200), fields: [] }
    await post('/api/blueprints', definition)
    const read = (await (await send('/api/definitions', { headers: own })).json()) as {
      files: object
      versions: object
    }
    const push = (name: string, versions: object) => {
      const files = { ...read.files, 'blueprints/pushed.json': JSON.stringify({ ...definition, name }) }
      return post('/api/definitions/push', { files, versions })
    }
    const pushed = await push('Other', read.versions)
    expect(pushed.status).toBe(200)
    expect(await push('Third', read.versions)).toMatchObject({ status: 412 })
    expect(await push('Third', { ...read.versions, ...pushed.body.versions })).toMatchObject({ status: 200 })
  })

  test.skipIf(!hasBrowser)('the admin page saves an entity, again and again', async () => {
    const own = await signIn(server.url, 'acme')
    const post = (path: string, body: object) =>
      send(path, { method: 'POST', headers: own, body: JSON.stringify(body) })
    const text = { key: 'text', type: 'text' }
    await post('/api/blueprints', { key: 'pages', name: 'Pages', fields: [{ key: 'name', type: 'text' }, text] })
    await post('/api/blueprints/pages/entities', { identifier: 'one', name: 'first', text: 'a long text '.repeat(100) })
    await using browser = await launchBrowser(`--host-resolver-rules=MAP ${HOST} 127.0.0.1`)
    const page = await browser.newPage({ ignoreHTTPSErrors: true })
    await page.goto(`https://${HOST}:${ports.https}/admin/data/pages/one`)
    await page.getByLabel('Username').fill('root')
    await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    const panel = page.getByRole('complementary')
    for (const name of ['second', 'third']) {
      await panel.getByRole('textbox', { name: 'name', exact: true }).fill(name)
      const answer = page.waitForResponse((response) => response.request().method() === 'PUT')
      await panel.getByRole('button', { name: 'Save' }).click()
      const sent = await answer
      const ifMatch = sent.request().headers()['if-match']
      if (changesEtags) expect(ifMatch).toMatch(CHANGED_ETAG)
      expect(sent.status()).toBe(200)
      await page.getByText('Saved.').first().waitFor()
    }
  })

  test('the log has the address of the client', async () => {
    await server.end('SIGTERM')
    const log = await server.logged
    expect(log).toContain('"127.0.0.1"')
    expect(log).not.toContain(FOREIGN_ADDRESS)
  })
})
