// engine: sqlite
import { expect, test } from 'bun:test'
import { Glob } from 'bun'
import { app } from '../src/app'
import { providers } from '../src/payments/providers'
import { AREA_RANKS } from './documents/area-ranks'
import { callApi, createTestTenant, withoutRateLimits } from './test-tenant'

const filled = (path: string) => path.replace(/:\w+/g, 'x')

test('every route declares its access level', () => {
  for (const { method, path, hooks } of app.routes)
    expect(hooks.detail?.['x-access'], `${method} ${path}`).toBeOneOf([
      'open',
      'anyone',
      'user',
      'oneself',
      'editor',
      'privileged',
      'curator',
      'teller',
      'operator',
      'local',
    ])
})

test('no route below /api has the access level operator', () => {
  for (const { method, path, hooks } of app.routes)
    if (path.startsWith('/api/')) expect(hooks.detail?.['x-access'], `${method} ${path}`).not.toBe('operator')
})

test('every route that needs a user answers anonymous callers 401 before it validates query or body', async () => {
  const { origin } = await createTestTenant()
  for (const { method, path, hooks } of app.routes) {
    // Tests are on the machine of the server; /metrics has tests of its own.
    if (['open', 'anyone', 'local'].includes(hooks.detail?.['x-access'])) continue
    const url = `${origin}${filled(path)}?limit=x`
    const answers = [await callApi(method, url)]
    if (method !== 'GET')
      answers.push(await callApi(method, url, { raw: '{"broken', headers: { 'content-type': 'text/plain' } }))
    for (const { status } of answers) expect(status, `${method} ${path}`).toBe(401)
  }
})

test('every route that reads credentials answers an invalid one with 401', async () => {
  using _ = withoutRateLimits()
  const { origin } = await createTestTenant()
  const bad: Record<string, string>[] = [
    { 'x-api-key': `atl_${'0'.repeat(64)}` },
    { authorization: 'Bearer x.y.z' },
    { authorization: 'Basic eDp5' },
  ]
  for (const { method, path, hooks } of app.routes) {
    if (['open', 'local'].includes(hooks.detail?.['x-access'])) continue
    for (const headers of bad)
      expect((await callApi(method, `${origin}${filled(path)}`, { headers })).status, `${method} ${path}`).toBe(401)
  }
})

test('routes of sign-in credentials have the access level oneself, which excludes impersonation', () => {
  const own = app.routes.filter(({ path }) => /^\/api\/(me\/|logout|cookie)/.test(path) && path !== '/api/me/')
  expect(own.length).toBeGreaterThan(6)
  for (const { method, path, hooks } of own) expect(hooks.detail?.['x-access'], `${method} ${path}`).toBe('oneself')
})

test('every variant of a union body allows additional properties', () => {
  // Elysia removes unknown properties only from bodies that are a single object.
  type Schema = { anyOf?: Schema[]; properties?: object; additionalProperties?: boolean }
  const bodies = app.routes.flatMap(({ method, path, hooks }) => {
    const variants = (hooks.body as Schema | undefined)?.anyOf ?? []
    return variants.filter(({ properties }) => properties).map((each) => [`${method} ${path}`, each] as const)
  })
  expect(bodies.length).toBeGreaterThan(3)
  for (const [route, { additionalProperties }] of bodies) expect(additionalProperties, route).toBe(true)
})

const area = (path: string) => path.split(/[/.]/)[0]!
const rank = (path: string) => AREA_RANKS.findIndex(({ areas }) => areas.includes(area(path)))
const sources = [...new Glob('**/*.{ts,tsx}').scanSync('src')].filter((file) => !file.endsWith('.d.ts'))

test.each(sources)(
  '%s imports only areas of lower ranks and has no access that belongs to other files',
  async (file) => {
    const source = await Bun.file(`src/${file}`).text()
    expect(rank(file), `${file} belongs to no area`).toBeGreaterThanOrEqual(0)
    for (const [, spec = ''] of source.matchAll(/(?:from|import)[ (]'([^']+)'/g)) {
      if (/^(bun:sqlite|better-sqlite3|pg|drizzle-orm\/sqlite-proxy)$/.test(spec))
        expect(area(file), file).toBe('storage')
      if (spec.startsWith('drizzle-orm')) expect(file, 'routes do not query').not.toMatch(/routes(\.ts|\/)/)
      const target = spec.startsWith('.') && new URL(spec, `file:///src/${file}`).pathname.match(/^\/src\/(.*)/)?.[1]
      if (!target || area(file) === area(target)) continue
      // `config` may throw the errors of `core`.
      if (file === 'config.ts' && area(target) === 'core') continue
      expect(rank(file), `${file} must not import ${spec}`).toBeGreaterThan(rank(target))
    }
    // The bundle of the admin page is made for production.
    if (/process\.env|Bun\.env/.test(source.replace("'process.env.NODE_ENV'", ''))) expect(file).toBe('config.ts')
    // Only these files check a URL of a tenant before they connect to it. The admin page runs in a browser.
    if (
      area(file) !== 'admin' &&
      /(await|return|=>|=|\?|:) fetch\(|'node:(http|https|net|tls|dgram|dns|http2)|Bun\.(connect|udpSocket)/.test(
        source,
      )
    )
      expect(file).toBeOneOf([
        ...[
          'core/ssrf-guard.ts',
          'core/dns.ts',
          'core/outbound-request.ts',
          'core/http-client.ts',
          'core/http-stream.ts',
        ],
        // Whoever runs a command chooses the server.
        'commands/installation/remote.ts',
        'commands/server-request.ts',
        'definitions/target.ts',
      ])
  },
)

/** Where a function of secure contexts is replaced, or where its lack is told. */
const PLAIN_HTTP_FILES = ['ui/copy-text.ts', 'ui/copy-button.tsx', 'api/new-id.ts', 'sign-in/passkey.ts']

test('the admin page calls no function that browsers leave out over plain HTTP, except where one is replaced', async () => {
  const missing =
    /randomUUID|crypto\.subtle|useClipboard|PublicKeyCredential|navigator\.(clipboard|serviceWorker|credentials|locks|storage|share|mediaDevices)/
  for (const file of sources.filter((path) => area(path) === 'admin')) {
    if (PLAIN_HTTP_FILES.some((path) => file === `admin/${path}`)) continue
    const source = await Bun.file(`src/${file}`).text()
    expect(source.match(missing)?.[0], file).toBeUndefined()
    const [ofMantine] = source.match(/import {[^}]*\bCopyButton\b[^}]*} from '@mantine\/core'/) ?? []
    expect(ofMantine, `${file} must import CopyButton from admin/ui/copy-button`).toBeUndefined()
  }
})

test('code of payments outside the folder of a provider names no provider, except where kinds are listed', async () => {
  const kinds = Object.keys(providers)
  const lists = [
    ...['payments/tables.ts', 'payments/shapes.ts', 'payments/providers/index.ts'],
    'payments/providers/amount-steps.ts',
  ]
  expect(kinds.length).toBeGreaterThan(2)
  for (const file of sources.filter((path) => path.startsWith('payments/') && !lists.includes(path))) {
    const source = (await Bun.file(`src/${file}`).text()).toLowerCase()
    const foreign = kinds.filter((kind) => !file.startsWith(`payments/providers/${kind}/`) && source.includes(kind))
    expect(foreign, file).toEqual([])
  }
})

test.each(sources)('%s does not fold letter case in SQL, where engines differ', async (file) => {
  const source = await Bun.file(`src/${file}`).text()
  expect(source).not.toMatch(/\b(lower|upper|i?like|glob)\(|\b(i?like|glob) [?'$]/i)
})

test.each(sources)('%s has fewer than 330 lines', async (file) => {
  const lines = (await Bun.file(`src/${file}`).text()).split('\n').length
  expect(lines, 'split it by noun').toBeLessThan(330)
})

test('verbs return values: outside routes, at most a few lines know the headers of an answer, and no code invents a request', async () => {
  const lines: string[] = []
  for (const file of new Glob('**/*.ts').scanSync('src')) {
    if (/(^|\/)routes(\.ts|\/)|-routes\.ts$/.test(file)) continue
    const source = await Bun.file(`src/${file}`).text()
    for (const line of source.split('\n')) if (/\bHttpContext\b/.test(line)) lines.push(`${file}: ${line}`)
    // The others read a request of another form, such as that of a thread or of a command.
    if (source.includes("new Request('http://localhost")) expect(file).toBeOneOf(['demo/demo.ts'])
  }
  expect(lines.length, lines.join('\n')).toBeLessThanOrEqual(15)
})

test('every Problem is created with a literal upper-case code', async () => {
  for (const file of sources) {
    const source = await Bun.file(`src/${file}`).text()
    for (const [, code] of source.matchAll(/new Problem\(\s*\d{3},\s*([^,]+),/g))
      expect(code, file).toMatch(/^['`][A-Z$][\w${}.()' ,]*['`]$/)
  }
})

test('every file that updates or deletes users invalidates the cache of actors', async () => {
  const read = sources.map(async (file) => [file, await Bun.file(`src/${file}`).text()] as const)
  for (const [file, source] of await Promise.all(read))
    if (/\b(update|delete)\(users\)/.test(source))
      expect(source, file).toMatch(/writeInvalidating\(\w+, 'actors'|topic `actors`/)
})

test('an error that is ignored has a reason in a comment beside it', async () => {
  for (const file of sources) {
    const lines = (await Bun.file(`src/${file}`).text()).split('\n')
    for (const [index, line] of lines.entries()) {
      if (!/\.catch\(\(\) => (\{\}|undefined)\)|\bcatch \{\}/.test(line)) continue
      const context = lines.slice(Math.max(0, index - 4), index + 1).join('\n')
      expect(context, `${file}:${index + 1}`).toMatch(/\/\/|\*\//)
    }
  }
})

test('only test/temp-folder.ts creates temporary folders, so that a run of the tests leaves none behind', async () => {
  for (const file of new Glob('**/*.ts').scanSync('test')) {
    if (file === 'temp-folder.ts' || file.includes('node_modules/')) continue
    const text = await Bun.file(`test/${file}`).text()
    expect(/\bmkdtemp[S(]|[`'"]\/tmp\/[\w-]*\$\{/.exec(text)?.[0], `test/${file}`).toBeUndefined()
  }
})
