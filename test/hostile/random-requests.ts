import { document, findMismatch } from '../description/described-answers'
import { callApi, type TestResponse } from '../test-tenant'

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
export function createRandom(seed: number) {
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
export type Random = ReturnType<typeof createRandom>

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

export type RandomRequest = {
  method: string
  /** The path as the route declares it, and with its parameters. */
  path: string
  filled: string
  query: string
  raw: string | undefined
}

/**
 * Returns a request to a route that its description mostly allows, with hostile values in some places. `fillSegment`
 * returns the value of a parameter of the path by the folder before it.
 */
export function createRequest(
  { method, path }: { method: string; path: string },
  random: Random,
  ids: string[],
  fillSegment: (folder: string) => string | undefined,
): RandomRequest {
  const described = paths[path.replace(/(.)\/$/, '$1').replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
  const filled = path.replace(/([\w-]+)\/:\w+/g, (_, folder: string) => {
    const id = random.chance(0.8) ? (fillSegment(folder) ?? random.pick(ids)) : undefined
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
  return { method, path, filled, query, raw }
}

const toQueryText = (value: unknown) => String(typeof value === 'object' ? JSON.stringify(value) : value).toWellFormed()

/** Sends a request, and returns its answer and what is wrong with it: an empty text, a 500 or an undescribed answer. */
export async function sendRequest(
  { method, path, filled, query, raw }: RandomRequest,
  origin: string,
  headers: Record<string, string>,
): Promise<{ answer: TestResponse; problem: string }> {
  const answer = await callApi(method, `${origin}${filled}${query && `?${query}`}`, {
    headers: { ...headers, ...(raw !== undefined && { 'content-type': 'application/json' }) },
    raw,
  })
  const about = `${method} ${filled}?${query} ${raw?.slice(0, 300)}`
  if (answer.status === 500) return { answer, problem: `${about}: 500 ${JSON.stringify(answer.body)}` }
  const mismatch = method === 'HEAD' ? '' : findMismatch(method, path, answer)
  return { answer, problem: mismatch && `${about}: ${mismatch}` }
}
