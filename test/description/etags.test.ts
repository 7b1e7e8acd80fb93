import { beforeAll, describe, expect, test } from 'bun:test'
import { createTestTenant } from '../test-tenant'
import { document } from './described-answers'

type Operation = { parameters?: { $ref?: string }[] }
type Thing = { create?: [path: string, body: () => object]; id?: string; change: object }

const t = await createTestTenant()
const admin = t.as('admin')
const ids: Record<string, string> = {}

/** What is read at each path whose writes take `If-Match`, how it is created, and a change of it. */
const things: Record<string, Thing> = {
  '/api/blueprints/{key}': {
    create: ['/blueprints', () => ({ key: 'notes', name: 'Notes', fields: [] })],
    change: { name: 'N' },
  },
  '/api/blueprints/{key}/entities/{identifier}': {
    create: ['/blueprints/notes/entities', () => ({ identifier: 'one' })],
    change: {},
  },
  '/api/components/{id}': {
    create: ['/components', () => ({ identifier: 'hello', content: 'export default () => 1' })],
    change: { description: 'Says hello' },
  },
  '/api/blocks/{id}': {
    create: ['/blocks', () => ({ name: 'footer', content: 'x', contentType: 'html' })],
    change: { content: 'y' },
  },
  '/api/configurations/app-configuration': { change: { metadata: { theme: 'dark' } } },
  '/api/configurations/{key}': {
    create: ['/configurations', () => ({ key: 'theme', metadata: {} })],
    change: { metadata: { dark: true } },
  },
  '/api/lambdas/{id}': {
    create: ['/lambdas', () => ({ name: 'One', code: 'export default () => 1' })],
    change: { description: 'One' },
  },
  '/api/integration-sources/{id}': {
    create: ['/integration-sources', () => ({ name: 'Own', kind: 'http', metadata: { url: 'https://example.com' } })],
    change: { name: 'Mine' },
  },
  '/api/integrations/{id}': {
    create: [
      '/integrations',
      () => ({ trigger: { kind: 'webhook' }, target: { kind: 'lambda', lambdaId: ids['/api/lambdas/{id}'] } }),
    ],
    change: { active: false },
  },
  '/api/payments/configuration': { change: { metadata: { defaultCurrency: 'EUR' } } },
  '/api/ai/agents/{id}': {
    create: ['/ai/agents', () => ({ name: 'Helper', sourceId: 'echo' })],
    change: { name: 'H' },
  },
}
const KEYS: Record<string, string> = { '/api/blueprints/{key}': 'notes', '/api/configurations/{key}': 'theme' }

const paths = document.paths as Record<string, Record<string, Operation>>
const takesVersion = (operation?: Operation) =>
  operation?.parameters?.some(({ $ref }) => $ref === '#/components/parameters/IfMatch')
const versioned = Object.keys(paths).filter((path) => paths[path]?.get && takesVersion(paths[path]?.put))

beforeAll(async () => {
  for (const [path, { create }] of Object.entries(things)) {
    if (!create) continue
    const { status, body } = await admin.post(create[0], create[1]())
    expect([path, status], JSON.stringify(body)).toEqual([path, 201])
    ids[path] = KEYS[path] ?? body.identifier ?? body._id
  }
  ids['/api/components/{id}'] = (await admin.get('/components')).body[0]._id
})

test('every path whose PUT takes a version is among those that are tried here', () => {
  expect(versioned.sort()).toEqual(Object.keys(things).sort())
})

describe('a resource that is read says its version, and a write takes that version and no other', () => {
  test.each(Object.entries(things))('%s', async (path, { change }) => {
    const url = path
      .replace('/api', '')
      .replace('{key}/', 'notes/')
      .replace(/\{\w+\}/, ids[path] ?? '')
    const etag = (await admin.get(url)).headers.get('etag')
    expect(etag).toMatch(/^"[^"]+"$/)
    expect((await admin.put(url, change, { 'if-match': '"0-other"' })).status).toBe(412)
    const changed = await admin.put(url, change, { 'if-match': `${etag}` })
    expect(changed.status, JSON.stringify(changed.body)).toBe(200)
    expect(changed.headers.get('etag')).toMatch(/^"[^"]+"$/)
  })

  // Proxies that compress answers change the ETag in these ways.
  test.each([
    ['weak', (etag: string) => `W/${etag}`],
    ['gzip', (etag: string) => etag.replace(/"$/, '-gzip"')],
    ['zstd', (etag: string) => `W/${etag.replace(/"$/, '-zstd"')}`],
  ] as const)('a version that a proxy made %s is the same version', async (_, asProxy) => {
    for (const [path, { change }] of Object.entries(things)) {
      const url = path
        .replace('/api', '')
        .replace('{key}/', 'notes/')
        .replace(/\{\w+\}/, ids[path] ?? '')
      const etag = `${(await admin.get(url)).headers.get('etag')}`
      expect([path, (await admin.put(url, change, { 'if-match': asProxy(etag) })).status]).toEqual([path, 200])
    }
  })
})
