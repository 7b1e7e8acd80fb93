// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasBrowser, launchBrowser } from '../fakes/browser'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  PASSWORD,
  parseStatus,
  type RunningAtoll,
  runAtoll,
  sendRaw,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { waitUntil } from '../wait-until'

setDefaultTimeout(180_000)

const PAGE = `<!doctype html>
<html lang="en">
<title>Notes</title>
<p id="out">waiting</p>
<script type="module" src="/assets/main-B3kd92xQ.js"></script>
</html>`
/** Signs in by cookie and reads an entity from the API of its own origin. */
const SCRIPT = `const body = JSON.stringify({ username: 'root', password: '${PASSWORD}' })
const signedIn = await fetch('/api/signin', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
const notes = await (await fetch('/api/blueprints/notes/entities')).json()
document.getElementById('out').textContent = signedIn.status + ' ' + notes[0].title
navigator.serviceWorker?.register('/sw.js').then(
  () => document.body.dataset.worker = 'registered',
  () => document.body.dataset.worker = 'refused',
)`

const at = createTempFolder()
let server: RunningAtoll
let token: string
const dist = join(at, 'dist')

function writeSite(text: string) {
  mkdirSync(join(dist, 'assets'), { recursive: true })
  writeFileSync(join(dist, 'index.html'), text)
  writeFileSync(join(dist, 'assets/main-B3kd92xQ.js'), SCRIPT)
  writeFileSync(join(dist, 'sw.js'), 'self.addEventListener("fetch", () => {})')
  writeFileSync(join(dist, '.env'), 'SECRET=1')
}

beforeAll(async () => {
  await createTenantByCli({ at }, 'acme')
  const hosts = await runAtoll('tenant hosts acme 127.0.0.1', { at })
  expect(hosts.err).toBe('')
  server = await startAtoll({ at })
  const call = apiCaller(server.url, await signIn(server.url, 'acme'))
  token = (await call('POST', '/api/me/api-tokens', { nickname: 'site', scopes: ['sites:write'] })).body.token
  await call('POST', '/api/blueprints', {
    ...{ key: 'notes', name: 'Notes', fields: [{ key: 'title', type: 'string' }] },
    permissions: [{ operation: 'read', scope: 'tenant', roleBased: ['user', 'admin'] }],
  })
  const created = await call('POST', '/api/blueprints/notes/entities', { title: 'Buy milk' })
  expect(created.status).toBe(201)
})
afterAll(() => server?.end('SIGKILL'))

const readRoot = async () => (await fetch(server.url)).text()

describe('the command line', () => {
  test('a folder is deployed to a server by --url, and a former deployment brought back', async () => {
    const remote = ['--url', server.url, '--token', token, '--json']
    const run = (...args: string[]) => runAtoll(['site', ...args, ...remote], { at })
    writeSite(PAGE)
    const first = await run('deploy', dist, '--spa')
    expect(first.err).not.toContain('code')
    expect(first.json).toMatchObject({ files: 3, spa: true, active: true, urls: [`${server.url}/`], leftOut: ['.env'] })
    expect(await readRoot()).toBe(PAGE)
    writeSite('second')
    await run('deploy', dist)
    expect(await readRoot()).toBe('second')
    expect((await run('list')).json).toHaveLength(2)
    expect((await run('rollback')).json._id).toBe(first.json._id)
    expect(await readRoot()).toBe(PAGE)
    const refused = await runAtoll(['site', 'list', '--url', server.url, '--token', 'atl_x', '--json'], { at })
    expect([refused.code, JSON.parse(refused.err).code]).toEqual([1, 'UNAUTHENTICATED'])
  })

  test('a running server notices within seconds what another process deploys to its data', async () => {
    expect(await readRoot()).toBe(PAGE)
    writeSite('from another process')
    const { code, out } = await runAtoll(['site', 'deploy', dist, '--tenant', 'acme'], { at })
    expect([code, out]).toEqual([0, expect.stringContaining('Deployed 3 files')])
    expect(out).toContain('Skipped because they start with a dot: .env\n')
    await waitUntil(async () => (await readRoot()) === 'from another process')
    const listed = await runAtoll('site list --tenant acme', { at })
    expect(listed.out.split('\n')[1]).toMatch(/ yes$/)
    const unconfirmed = await runAtoll('site remove --tenant acme', { at })
    expect([unconfirmed.code, unconfirmed.err]).toEqual([2, expect.stringContaining('Add --yes to confirm.')])
    expect((await runAtoll('site remove --tenant acme --yes', { at })).out).toBe('Deleted the site.\n')
    await waitUntil(async () => (await readRoot()).includes('Atoll'))
  })

  test('a folder without index.html, and one with a link, are refused with a sentence', async () => {
    const empty = await runAtoll(['site', 'deploy', at, '--tenant', 'acme', '--json'], { at })
    expect([empty.code, JSON.parse(empty.err).message]).toEqual([1, expect.stringContaining('has no index.html')])
    const linked = createTempFolder()
    writeFileSync(join(linked, 'index.html'), 'x')
    symlinkSync('/etc/passwd', join(linked, 'passwd'))
    const refused = await runAtoll(['site', 'deploy', linked, '--tenant', 'acme', '--json'], { at })
    expect(JSON.parse(refused.err).message).toContain('"passwd" is a symbolic link')
    expect((await runAtoll(['site', 'deploy', dist], { at })).code).toBe(2)
  })
})

describe('a real client', () => {
  test('paths that climb, sent as bytes, get 404, and nothing of the disk', async () => {
    writeSite('home')
    await runAtoll(['site', 'deploy', dist, '--url', server.url, '--token', token], { at })
    for (const path of [
      '/../../etc/passwd',
      '/..%2f..%2fetc/passwd',
      '/assets/../../.env',
      '/.env',
      '/\\..\\x',
      '/%00',
    ]) {
      const answer = await sendRaw(
        server.port,
        [`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`],
        500,
      )
      expect(parseStatus(answer), path).toBe(404)
      expect(answer).not.toMatch(/root:|SECRET/)
    }
    const head = await sendRaw(server.port, ['HEAD / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n'], 500)
    expect(head.toLowerCase()).toContain('content-length: 4\r\n')
    expect(head).toEndWith('\r\n\r\n')
  })

  test.skipIf(!hasBrowser)(
    'a page in a browser signs in by cookie, reads an entity, and gets no worker at the top',
    async () => {
      writeSite(PAGE)
      await runAtoll(['site', 'deploy', dist, '--spa', '--url', server.url, '--token', token], { at })
      await using browser = await launchBrowser()
      const page = await browser.newPage()
      await page.goto(`${server.url}/any/path`)
      await page.waitForFunction('document.body.dataset.worker')
      expect(await page.textContent('#out')).toBe('200 Buy milk')
      expect(await page.evaluate('document.body.dataset.worker')).toBe('refused')
      const encodings = await page.evaluate(async () =>
        (await fetch('/assets/main-B3kd92xQ.js')).headers.get('content-encoding'),
      )
      expect(encodings).toBe('br') // as over TLS, because it is the loopback
      // The site cannot show the admin page in a frame.
      const framed = await page.evaluate(`new Promise((resolve) => {
        const frame = document.createElement('iframe')
        frame.src = '/admin'
        frame.addEventListener('load', () => resolve(!!frame.contentDocument?.getElementById('root')))
        document.body.append(frame)
      })`)
      expect(framed).toBeFalse()
    },
  )
})
