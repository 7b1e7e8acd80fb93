import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeBlocksOf } from '../documents/markdown'
import { openStream } from '../entities/changes/stream-client'
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
}

describe.each(Object.entries(proxies))('%s with its documented configuration', (name, configure) => {
  // What a proxy passes on depends on no database.
  const program = databaseUrl ? null : Bun.which(name, { PATH: `${process.env.PATH}:/usr/sbin` })
  if (!program) {
    if (!databaseUrl) console.warn(`SKIPPED: the tests of ${name}, which is not installed here.`)
    test.skip('the proxy is not installed', () => {})
    return
  }
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

  test('the log has the address of the client', async () => {
    await server.end('SIGTERM')
    const log = await server.logged
    expect(log).toContain('"127.0.0.1"')
    expect(log).not.toContain(FOREIGN_ADDRESS)
  })
})
