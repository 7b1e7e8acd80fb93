import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { app } from '../../src/app'
import { document, findMismatch } from '../description/described-answers'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../property-runner'
import { type ApiClient, callApi, createTestTenant, fullAccessRules, withoutRateLimits } from '../test-tenant'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)

type Schema = {
  $ref?: string
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: Schema | boolean
}

/** Values that programs often do not expect. */
const HOSTILE_VALUES: unknown[] = [
  ...[null, true, false, 0, -1, 1e308, -0.5, 9_007_199_254_740_992, Number.MAX_SAFE_INTEGER],
  ...['', ' ', '0', 'null', '\u0000', '\ud800', '😀'.repeat(50), 'x'.repeat(5_000), "' or 1=1 --", '../../etc/passwd'],
  ...[
    '<script>alert(1)</script>',
    '{{7*7}}',
    '__proto__',
    'constructor',
    '2030-13-45T99:99:99Z',
    '1970-01-01T00:00:00.000Z',
  ],
  ...[[], {}, [[]], { $gt: '' }, { __proto__: { admin: true } }, [null, [null]], { a: { b: { c: {} } } }],
]
const HOSTILE_SEGMENTS = [
  'none',
  '%00',
  '%ff',
  '..%2f..',
  'constructor',
  '__proto__',
  '😀',
  '-1',
  'x'.repeat(300),
  '*',
  '%25',
]
const HOSTILE_QUERIES = [
  '$limit=-1',
  '$limit=1e9',
  'page=x',
  'sort=%00',
  '$sort=-__proto__',
  '$after=%F0%9F%98%80',
  'a[b][c]=1',
  'count=true',
  'select=..',
  '$filter={',
  'tenant=x',
  '&&==&',
]

/** Numbers that the same seed gives again (mulberry32). */
function createRandom(seed: number) {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!
  /** How often a hostile value stands where a valid one could: many requests have to come through. */
  const hostility = pick([0, 0, 0.03, 0.15])
  return { next, pick, chance: (part: number) => next() < part, hostility }
}
type Random = ReturnType<typeof createRandom>

const resolve = (schema: Schema): Schema =>
  schema.$ref
    ? resolve(
        schema.$ref
          .slice(2)
          .split('/')
          .reduce((part: never, name) => part[name.replaceAll('~1', '/')], document as never),
      )
    : schema

/** Returns a value that a schema mostly allows, with hostile ones in some places. */
function createValue(given: Schema, random: Random, ids: string[], depth = 0): unknown {
  const schema = resolve(given)
  if (random.chance(random.hostility) || depth > 6) return random.pick(HOSTILE_VALUES)
  const variants = schema.anyOf ?? schema.oneOf
  if (variants) return createValue(random.pick(variants), random, ids, depth + 1)
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map((part) => createValue(part, random, ids, depth + 1)))
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return random.pick(schema.enum)
  const type = Array.isArray(schema.type) ? random.pick(schema.type) : schema.type
  if (type === 'object' || schema.properties) {
    const entries = Object.entries(schema.properties ?? {}).filter(
      ([key]) => schema.required?.includes(key) || random.chance(0.4),
    )
    const more = random.chance(0.1)
      ? [[random.pick(['__proto__', 'extra', 'id', '$set']), random.pick(HOSTILE_VALUES)]]
      : []
    return Object.fromEntries([
      ...entries.map(([key, part]) => [key, createValue(part, random, ids, depth + 1)]),
      ...more,
    ])
  }
  if (type === 'array')
    return Array.from({ length: Math.floor(random.next() * 3) }, () =>
      createValue(schema.items ?? {}, random, ids, depth + 1),
    )
  if (type === 'integer' || type === 'number') return random.pick([0, 1, 2, 5, 10, 100, -1, 0.5])
  if (type === 'boolean') return random.chance(0.5)
  if (type === 'null') return null
  if (type === 'string')
    return random.pick(['a', 'name', 'things', '2030-01-31T12:00:00.000Z', 'a@example.com', ...ids])
  return random.pick(HOSTILE_VALUES)
}

type Operation = {
  parameters?: { name: string; in: string; schema?: Schema; $ref?: string }[]
  requestBody?: { content?: Record<string, { schema?: Schema }> }
}
const paths = document.paths as unknown as Record<string, Record<string, Operation>>

// Streams never end by themselves, and the operator's routes concern the installation.
const routes = app.routes.filter(
  ({ path, method }) =>
    path.startsWith('/api/') && !/\/changes$|\/listen$/.test(path) && method !== 'ALL' && method !== 'WS',
)

let tenant: Awaited<ReturnType<typeof createTestTenant>>
let clients: Record<string, { origin: string; headers: Record<string, string> }>
let ids: string[]
/** What a parameter of a path mostly is, by the folder before it. */
let idByFolder: Record<string, string>
const unlimited = withoutRateLimits()
afterAll(() => unlimited[Symbol.dispose]())

/** Creates a tenant with something of many kinds, whose ids paths and bodies use. */
async function prepareTenant() {
  tenant = await createTestTenant()
  const admin: ApiClient = tenant.as('admin')
  const things = { key: 'things', name: 'Things', fields: [{ key: 'name', type: 'text' }] }
  const created = [
    await admin.post('/blueprints', { ...things, permissions: fullAccessRules('tenant', 'user') }),
    await admin.post('/blueprints/things/entities', { name: 'one' }),
    await admin.post('/workspaces', { name: 'Engines' }),
    await admin.post('/lambdas', { name: 'Greeting', code: 'export default () => 1' }),
    await admin.post('/plans', { name: 'Pro', monthlyPrice: 10, currency: 'EUR' }),
    await admin.post('/coupons', { code: 'SPRING', discountType: 'percentage', discountValue: 20 }),
    await admin.post('/ai/agents', { name: 'Helper', sourceId: 'echo' }),
    await admin.post('/plugins', { name: 'Mailer' }),
    await admin.post('/blocks', { name: 'footer', content: '<p>x</p>', contentType: 'html' }),
    await admin.post('/events', { source: 'shop', kind: 'order', eventName: 'placed' }),
  ]
  await admin.post('/configurations', { key: 'theme', metadata: { dark: true } })
  const createdIds = created.map(({ body }) => String(body._id ?? 'none'))
  ids = ['things', 'footer', ...Object.values(tenant.users), ...createdIds]
  const [, entity, workspaces, lambdas, plans, coupons, agents, plugins, blocks, events] = createdIds as string[]
  const named = { blueprints: 'things', entities: entity, users: tenant.users.user, configurations: 'theme' }
  idByFolder = { ...named, workspaces, lambdas, plans, coupons, agents, plugins, blocks, events } as typeof idByFolder
  const { origin, tokens } = tenant
  clients = {
    guest: { origin, headers: {} },
    user: { origin, headers: { 'x-api-key': tokens.user } },
    admin: { origin, headers: { 'x-api-key': tokens.admin } },
  }
}
beforeAll(prepareTenant)

async function sendRandomRequest(seed: number) {
  const random = createRandom(seed)
  const { method, path } = random.pick(routes)
  const caller = random.pick(['guest', 'user', 'user', 'user', 'admin', 'admin', 'admin', 'admin'])
  const { origin, headers } = clients[caller]!
  const described = paths[path.replace(/(.)\/$/, '$1').replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
  const filled = path.replace(/([\w-]+)\/:\w+/g, (_, folder: string) => {
    const id = random.chance(0.8) ? (idByFolder[folder] ?? random.pick(ids)) : undefined
    return `${folder}/${id ?? random.pick([...ids, ...HOSTILE_SEGMENTS])}`
  })
  const declared = (described?.parameters ?? []).flatMap((parameter) =>
    parameter.in === 'query' && random.chance(0.3)
      ? [`${parameter.name}=${encodeURIComponent(toQueryText(createValue(parameter.schema ?? {}, random, ids)))}`]
      : [],
  )
  const query = [...declared, ...(random.chance(0.2) ? [random.pick(HOSTILE_QUERIES)] : [])].join('&')
  const schema = described?.requestBody?.content?.['application/json']?.schema
  const hasBody = method !== 'GET' && method !== 'HEAD' && random.chance(0.9)
  const raw = hasBody
    ? random.chance(0.05)
      ? random.pick(['{', '[]', 'null', '"x"', '{"a":1}{"b":2}', '\u0000'])
      : JSON.stringify(createValue(schema ?? {}, random, ids))
    : undefined
  const answer = await callApi(method, `${origin}${filled}${query && `?${query}`}`, {
    headers: { ...headers, ...(raw !== undefined && { 'content-type': 'application/json' }) },
    raw,
  })
  const about = `${caller}: ${method} ${filled}?${query} ${raw?.slice(0, 300)}`
  if (answer.status === 500) return `${about}: 500 ${JSON.stringify(answer.body)}`
  const mismatch = method === 'HEAD' ? '' : findMismatch(method, path, answer)
  return mismatch && `${about}: ${mismatch}`
}

const toQueryText = (value: unknown) => String(typeof value === 'object' ? JSON.stringify(value) : value).toWellFormed()

test('random and hostile requests of guests, users and admins to every route get described answers and never 500', async () => {
  let sent = 0
  await checkProperty(
    600,
    fc.asyncProperty(fc.integer(), async (seed) => {
      // What requests delete would otherwise be missing for the others.
      if (++sent % 500 === 0) await prepareTenant()
      expect(await sendRandomRequest(seed)).toBe('')
    }),
  )
})
