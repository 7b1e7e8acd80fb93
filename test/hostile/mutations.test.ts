import { afterAll, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { Kind, OptionalKind, type TSchema } from '@sinclair/typebox'
import { app } from '../../src/app'
import { requests } from '../accounts/access/route-requests'
import {
  createTenantFixture,
  type Requester,
  type RouteRequest,
  routes,
  sendRequest,
  type TenantFixture,
} from '../accounts/access/tenant-fixture'
import { seededRandom } from '../blueprints/seeded-random'
import { PROPERTY_TIMEOUT_MS } from '../property-runner'
import type { TestResponse } from '../test-tenant'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)

const ROUNDS = 4 * Number(process.env.TEST_RUNS ?? 1)
const seed = Number(process.env.TEST_SEED ?? (process.env.TEST_RUNS ? Date.now() % 1e6 : 11))

/** Values that clients send by mistake, and attackers on purpose. */
const JUNK: unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e21, -1e308, Number.MAX_SAFE_INTEGER, 2 ** 31, 5e-324],
  ...[
    '',
    ' ',
    'null',
    'undefined',
    'true',
    '0',
    '-1',
    '1e999',
    'NaN',
    '10',
    'a',
    '\n',
    '\u0001',
    '\u0000',
    '\ud800',
    '💥',
  ],
  ...[
    'x'.repeat(70_000),
    "' or 1=1 --",
    '$.a',
    '"',
    '%',
    '*',
    '../../etc/passwd',
    '<script>',
    '{{7*7}}',
    '\\',
    '(?:a+)+$',
  ],
  ...['2026-02-30', '2026-01-01T00:00:00Z', 'http://127.0.0.1:1/', 'javascript:alert(1)', 'https://[::1]', 'a@b'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', '_id', 'echo', 'USD', 'monthly', 'user', 'admin'],
  ...['01a1ff53-9c39-7232-9f88-02a1f52e414a', '01A1FF53-9C39-7232-9F88-02A1F52E414A', 'tenant', 'on', 'off'],
  ...[[], {}, [[]], [{}], [null], ['a', 'a'], Array(300).fill(0), { a: { a: { a: { a: {} } } } }, { length: 1e9 }],
  ...[{ constructor: { prototype: {} } }, JSON.parse('{"__proto__":{"admin":true}}'), { toJSON: 1 }],
  ...[{ $ne: null }, { $gt: '' }, { $in: [1] }, { toString: null }, { _id: 'x', created: 'x', user: 'x' }],
]

/** Statuses that the failure of another server may cause. */
const UPSTREAM_STATUSES = [502, 503, 504]

const { hash } = Bun.password
const CHEAP_HASH = { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 } as const
const hashSpy = spyOn(Bun.password, 'hash').mockImplementation((text) => hash(text, CHEAP_HASH))
afterAll(() => hashSpy.mockRestore())

const schemas = new Map(
  app.routes.map(({ method, path, hooks }) => [`${method} ${path}`, hooks as { body?: TSchema; query?: TSchema }]),
)

test(`randomly mutated requests never cause an internal error and are refused with sentences (seed ${seed})`, async () => {
  const { pick, some, below } = seededRandom(seed)
  const failed: string[] = []
  for (let n = 0; n < ROUNDS; n++) {
    // Mutated requests may use up or remove what later requests need.
    const at = await createTenantFixture()
    for (const route of routes) {
      const who = pick(['admin', 'admin', 'admin', 'user'] as const)
      const headers = { 'x-api-key': at.tokens[who] }
      const { body: shape, query } = schemas.get(route.name) ?? {}
      const sample = await requestOf(at, route, { user: at.users[who], email: at.email(who), headers })
      const request: RouteRequest = { ...sample, body: shape && below(2) ? generate(shape) : sample.body }
      for (const change of some(['body', 'body', 'body', 'whole', 'query', 'path', 'headers'] as const, 3)) {
        const name = pick(Object.keys(sample.path ?? { none: '' }))
        if (change === 'body') request.body = mutate(request.body ?? {})
        if (change === 'whole') request.body = pick(JUNK)
        if (change === 'query') request.query = randomQuery(query)
        if (change === 'headers')
          request.headers = { ...request.headers, [pick(HEADERS)]: pick(WORDS.filter(isPrintableAscii)) }
        if (change === 'path' && sample.path) request.path = { ...request.path, [name]: pick(WORDS).toWellFormed() }
      }
      if (route.method === 'GET') delete request.body
      const answer = await sendRequest(at.origin, route, request, headers)
      const wrong = findFailure(answer) ?? findBadMessage(answer)
      if (wrong) failed.push(`${route.name} ${JSON.stringify(request).slice(0, 600)}: ${wrong}`)
    }
  }
  expect(failed).toEqual([])

  function mutate(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || !below(6)) return pick(JUNK)
    if (Array.isArray(value)) {
      const copy = [...value]
      if (copy.length && below(3)) copy[below(copy.length)] = mutate(copy[below(copy.length)])
      else copy.push(pick(JUNK))
      return copy
    }
    const names = Object.keys(value)
    const copy = { ...value } as Record<string, unknown>
    if (names.length && below(5)) {
      const name = pick(names)
      if (below(5)) copy[name] = mutate(copy[name])
      else delete copy[name]
    } else Object.defineProperty(copy, `${pick(WORDS)}`, { value: pick(JUNK), enumerable: true })
    return copy
  }

  function randomQuery(shape?: TSchema) {
    const names = [...Object.keys(shape?.properties ?? {}), ...QUERY_PARAMETERS, ...QUERY_PARAMETERS]
    const parts = some(names, 3).map((name) => `${name}=${encodeQueryValue(pick([...WORDS, ...JUNK]))}`)
    return parts.join('&')
  }

  /** A value of a shape, without most of its optional properties. */
  function generate(shape: TSchema): unknown {
    const kind = shape[Kind]
    if (shape.const !== undefined) return shape.const
    if (shape.anyOf) return generate(pick(shape.anyOf as TSchema[]))
    if (shape.allOf) return Object.assign({}, ...(shape.allOf as TSchema[]).map(generate))
    if (kind === 'Object') {
      const entries = Object.entries((shape.properties ?? {}) as Record<string, TSchema>)
      const chosen = entries.filter(([, one]) => !one[OptionalKind] || below(3))
      return Object.fromEntries(chosen.map(([name, one]) => [name, generate(one)]))
    }
    if (kind === 'Array') return Array.from({ length: below(3) }, () => generate(shape.items as TSchema))
    if (kind === 'Record') return { [`${pick(WORDS)}`]: pick(JUNK) }
    if (kind === 'Boolean') return !below(2)
    if (kind === 'Number' || kind === 'Integer') return pick([0, 1, 5, 100, shape.minimum ?? -1, shape.maximum ?? 1e15])
    if (kind === 'String') {
      if (shape.enum) return pick(shape.enum as string[])
      return pick(['a', 'x'.repeat(Math.min(shape.minLength ?? 1, 1_000)), ...WORDS])
    }
    if (kind === 'Null') return null
    return pick(JUNK)
  }
})

/** A valid request of a route, or one with placeholder parameters if its subject has been removed. */
async function requestOf(
  at: TenantFixture,
  { name, path }: (typeof routes)[number],
  by: Requester,
): Promise<RouteRequest> {
  try {
    return (await requests[name]?.(at, by)) ?? {}
  } catch {
    return { path: Object.fromEntries([...path.matchAll(/:(\w+)/g)].map(([, key]) => [key, 'x'])) }
  }
}

function findFailure({ status, body }: TestResponse) {
  const answerText = JSON.stringify(body) ?? ''
  if (status >= 500 && !UPSTREAM_STATUSES.includes(status)) return `${status} ${answerText.slice(0, 300)}`
  if (status >= 400 && !(body?.code && body.message)) return `${status} without a problem: ${answerText.slice(0, 200)}`
  if (/\\n +at |node_modules|SQLITE|drizzle/.test(answerText)) return `reveals internals: ${answerText.slice(0, 300)}`
}

/** Explains a message that is not one sentence per path, or returns undefined. */
function findBadMessage({ body }: TestResponse) {
  if (body?.code !== 'INVALID_INPUT') return
  const errors = Array.isArray(body.details) ? (body.details as { path?: unknown; message?: unknown }[]) : []
  for (const { path, message } of [{ path: '', message: body.message }, ...errors])
    if (
      typeof path !== 'string' ||
      !/[.?…]$/.test(`${message}`) ||
      /^Expected | string to match |'\^/.test(`${message}`)
    )
      return `bad message: ${JSON.stringify({ path, message }).slice(0, 500)}`
  if (new Set(errors.map((flaw) => JSON.stringify(flaw))).size < errors.length)
    return `duplicate: ${JSON.stringify(errors).slice(0, 500)}`
}

const isPrintableAscii = (text: string) => /^[\x20-\x7e]*$/.test(text)
const WORDS = JUNK.filter((one) => typeof one === 'string' && one.length < 1_000) as string[]
const QUERY_PARAMETERS = [
  'limit',
  'page',
  'sort',
  'count',
  'search',
  '$sort',
  '$limit',
  '$q',
  '$populate',
  'x[$gt]',
  'title[$in]',
]
const HEADERS = [
  'if-match',
  'if-none-match',
  'accept-version',
  'last-event-id',
  'x-impersonate-user',
  'idempotency-key',
]

function encodeQueryValue(value: unknown) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return encodeURIComponent(text.toWellFormed().slice(0, 2_000))
}
