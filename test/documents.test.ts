// engine: sqlite
import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { Glob } from 'bun'
import { providerKinds } from '../src/payments/providers'
import { AREA_RANKS } from './documents/area-ranks'
import { API_ERRORS, COMMAND_CODES, FOREIGN_CODES, LOG_CODES, NESTED_CODES, NOT_FOUND_NAMES } from './documents/errors'
import { EVENTS } from './documents/events'
import { generatePages } from './documents/generate'
import { anchorsOf, codeBlocksOf, linksOf } from './documents/markdown'
import { isRunnable, runBlocks } from './documents/shell'
import { createTempFolder, type RunningAtoll, runAtoll, signIn, startAtoll } from './fakes/cli'

setDefaultTimeout(120_000)

const root = resolve(import.meta.dir, '..')
const list = (pattern: string) => [...new Glob(pattern).scanSync(root)].sort()
const read = (path: string) => Bun.file(join(root, path)).text()

const guides = list('docs/guides/*.md').filter((path) => !path.endsWith('README.md'))
const documents = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...list('docs/**/*.md')]

test('README.md can be read at one sitting', async () => {
  expect((await read('README.md')).trimEnd().split('\n').length).toBeLessThanOrEqual(150)
})

describe.each(documents)('%s', (path) => {
  test('every link leads to a file or heading that exists', async () => {
    for (const link of linksOf(await read(path))) {
      if (/^[a-z]+:/i.test(link)) continue
      const [file = '', anchor] = link.split('#')
      const target = file ? join(dirname(path), file) : path
      expect(existsSync(join(root, target)), `${link} in ${path}`).toBe(true)
      // Once it is a site, a document has only the other documents beside it.
      if (path.startsWith('docs/')) expect(target, `${link} in ${path}`).toMatch(/^docs\/.*\.(md|png|svg)$/)
      if (!anchor) continue
      expect(statSync(join(root, target)).isFile(), `${link} in ${path}`).toBe(true)
      expect([...anchorsOf(await read(target))], `${link} in ${path}`).toContain(anchor)
    }
  })

  test('every code block names its language, and every JSON block can be parsed', async () => {
    for (const { info, code, line } of codeBlocksOf(await read(path))) {
      expect(info, `${path}:${line}`).toMatch(/^(sh( no-run)?|json|js|ts|http|sql|nginx|caddy|haproxy|yaml|ini|text)$/)
      if (info === 'json') expect(() => JSON.parse(code), `${path}:${line}`).not.toThrow()
    }
  })
})

describe('the reference', () => {
  const source = list('src/**/*.ts')
    .map((path) => readFileSync(join(root, path), 'utf8'))
    .join('\n')
  const findAll = (pattern: RegExp) => [...source.matchAll(pattern)].map(([, ...groups]) => groups)

  test.each(Object.entries(generatePages()))('%s is what "npm run docs" writes', async (path, text) => {
    expect(await read(path)).toBe(text)
  })

  test('every option and argument of a command has a meaning in the reference', () => {
    expect(generatePages()['docs/reference/cli.md']).not.toMatch(/\| \.? ?\|$/m)
  })

  test('every error code is documented', async () => {
    const documented = [API_ERRORS, NESTED_CODES, COMMAND_CODES, LOG_CODES].flatMap((codes) => Object.keys(codes))
    const known = new Set([...documented, ...FOREIGN_CODES, ...NOT_FOUND_NAMES.map(toNotFoundCode)])
    for (const code of (await read('test/compatibility/codes.txt')).trim().split('\n'))
      expect(known.has(code), `${code} is missing in test/documents/errors.ts`).toBe(true)
  })

  test('every documented code occurs in the source', () => {
    for (const code of [API_ERRORS, NESTED_CODES, COMMAND_CODES, LOG_CODES].flatMap((codes) => Object.keys(codes)))
      expect(source.includes(`'${code}'`), `${code} is in test/documents/errors.ts`).toBe(true)
  })

  test('the documented status of every error is the one that the source gives it', () => {
    const pairs = findAll(/\b([45]\d\d),\s*'([A-Z][A-Z_]+)'/g)
    expect(pairs.length).toBeGreaterThan(100)
    for (const [status, code = ''] of pairs)
      if (API_ERRORS[code]) expect(API_ERRORS[code][0], code).toContain(Number(status))
  })

  test('every resource that can be missing is documented', () => {
    for (const [name = ''] of findAll(/\bnotFound(?:Problem)?\('([a-z ]+)'\)/g)) expect(NOT_FOUND_NAMES).toContain(name)
  })

  test('every code of the log is documented', () => {
    for (const [code = ''] of findAll(/\blogError\('([A-Z_]+)'/g)) expect(Object.keys(LOG_CODES)).toContain(code)
  })

  test('every event of the system is documented', () => {
    const names = EVENTS.map(({ name }) => name)
    for (const [name = ''] of findAll(/eventName: '([a-z-]+)'/g))
      if (name !== 'order-placed') expect(names).toContain(name)
    for (const [type = ''] of findAll(/EventName = ([^\n]+)/g))
      for (const [, name = ''] of type.matchAll(/'([a-z-]+)'/g)) expect(names).toContain(name)
  })
})

describe.each([...list('docs/adr/[0-9]*.md'), ...list('docs/architecture/*.md')])('%s', (path) => {
  test('every file that it names exists', async () => {
    const paths = filesNamedIn(await read(path))
    expect(paths.length, 'it names files').toBeGreaterThan(0)
    for (const one of paths) expect(list(one).length, `${one} in ${path}`).toBeGreaterThan(0)
  })
})

test('every decision is in the index, under a number of its own', async () => {
  const index = linksOf(await read('docs/adr/README.md'))
  const paths = list('docs/adr/[0-9]*.md')
  for (const path of paths) expect(index).toContain(path.replace('docs/adr/', ''))
  const numbers = paths.map((path) => path.slice('docs/adr/'.length).split('-')[0])
  expect(numbers).toEqual([...new Set(numbers)])
})

test('the overview lists all areas in the order of their ranks', async () => {
  const rankOf = new Map(AREA_RANKS.flatMap(({ areas }, rank) => areas.map((area) => [area, rank])))
  rankOf.delete('admin')
  expect(rankOf.size).toBeGreaterThan(20)
  const overview = await read('docs/architecture/overview.md')
  const rows = overview.split('\n').filter((line) => line.startsWith('| `'))
  const areas = rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`([\w-]+)`/g)].map(([, area = '']) => area))
  expect([...areas].sort()).toEqual([...rankOf.keys()].sort())
  const order = areas.map((area) => rankOf.get(area)!)
  expect(order).toEqual([...order].sort((a, b) => a - b))
})

test.each(providerKinds)('the guide Payments has a row for connections of the kind %s', async (kind) => {
  expect(await read('docs/guides/payments.md')).toContain(`\n| \`${kind}\` |`)
})

test('every dependency has a reason', async () => {
  const text = await read('docs/architecture/dependencies.md')
  const { dependencies, devDependencies } = await Bun.file(join(root, 'package.json')).json()
  for (const name of Object.keys({ ...dependencies, ...devDependencies })) expect(text).toContain(`\`${name}\``)
})

const toNotFoundCode = (name: string) => `${name.toUpperCase().replaceAll(' ', '_')}_NOT_FOUND`

/** The paths that the section "Files" of a document names, as patterns; a folder stands for all that is in it. */
function filesNamedIn(text: string): string[] {
  const section = text.split(/^## /m).find((part) => part.startsWith('Files\n')) ?? ''
  return [...section.matchAll(/`([^`\s]+)`/g)].map(([, path = '']) => (path.endsWith('/') ? `${path}**` : path))
}

describe('examples', () => {
  const isTestable = !!Bun.which('curl') && !!Bun.which('sh')
  if (!isTestable) console.warn('SKIPPED: the examples of the documents are run by curl and sh.')

  test.skipIf(!isTestable)('the README works as it is printed', async () => {
    const blocks = codeBlocksOf(await read('README.md')).filter(isRunnable)
    const [create, ...requests] = blocks
    const folder = createTempFolder()
    await runBlocks([create!], { folder, url: '' })
    await using server = await startAtoll({ at: folder })
    expect(await runBlocks(requests, { folder, url: server.url })).toContain('"title":"Walden"')
  })

  /** Guides share a server, where each has a tenant with the administrator of "Getting started". */
  let shared: Promise<{ folder: string; server: RunningAtoll }> | undefined
  const startShared = async () => {
    const folder = createTempFolder()
    const env = { ATOLL_RATE_LIMITS: 'off', ATOLL_AI_ECHO: 'on' }
    return { folder, server: await startAtoll({ at: folder, env }) }
  }

  test.skipIf(!isTestable).each(guides)('%s works as it is printed', async (path) => {
    const blocks = codeBlocksOf(await read(path)).filter(isRunnable)
    expect(blocks.length, 'a guide has examples').toBeGreaterThan(0)
    shared ??= startShared()
    const { folder, server } = await shared
    const tenant = relative('docs/guides', path).replace('.md', '')
    const host = `${tenant}.localhost`
    const admin = { username: 'ada', password: 'correct-horse' }
    const options = ['--host', host, '--admin-username', admin.username, '--admin-password', admin.password]
    expect((await runAtoll(['tenant', 'create', tenant, ...options], { at: folder })).code).toBe(0)
    const { authorization = '' } = await signIn(server.url, tenant, admin.username, admin.password)
    const url = `http://${host}:${server.port}`
    const env = {
      ATOLL: url,
      TENANT: tenant,
      TOKEN: authorization.replace('Bearer ', ''),
      AUTH: `authorization: ${authorization}`,
    }
    await runBlocks(blocks, { folder, url, env })
  })

  afterAll(async () => void (await (await shared)?.server.end('SIGKILL')))
})
