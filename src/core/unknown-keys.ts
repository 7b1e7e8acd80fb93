import type { TSchema } from '@sinclair/typebox'
import { type AnyElysia, Elysia } from 'elysia'
import { KEYS, type KeyPolicy } from './annotations'
import { nearestKey } from './nearest-key'
import { invalid } from './problem'
import { type Flaw, MAX_FLAWS, nameOf } from './validation'

const MAX_HEADER_LENGTH = 500
const MAX_HEADER_KEY_LENGTH = 64
const MAX_COMPARED_KEYS = 200 // of a body

/** The keys that an object may have, and where it stands, for keys that belong further up. */
type Level = { keys: readonly string[]; at: string }
type Check = (value: unknown, path: string, flaws: Flaw[], above: Level[]) => void

/** What is wrong with the keys of the parts of a value that are strict, by its shape. `at` stands before the paths. */
export function listUnknownKeys(shape: TSchema, value: unknown, at = '', above: Level[] = []): Flaw[] {
  const flaws: Flaw[] = []
  checkOf(shape)?.(value, at, flaws, above)
  return flaws
}

/** Keys that look like a misspelling of a known one; `settled` ones are not looked at. */
export const listMisspelledKeys = (value: object, known: readonly string[], at = '', settled: object = {}): Flaw[] =>
  Object.keys(value).flatMap((key) => {
    const meant = Object.hasOwn(settled, key) ? undefined : misspelled(key, known)
    return meant === undefined ? [] : [unknownKey(`${at}/${escaped(key)}`, meant)]
  })

/** What stands after a message about a name that nothing has: the name that was probably meant. */
export const suggestionOf = (name: string, known: readonly string[]): string => {
  const meant = nearestKey(name, known)
  return meant === undefined ? '' : ` Did you mean \`${meant}\`?`
}

/**
 * Looks at the keys of each body before its shape takes out what it does not name: those of strict parts, and those at the
 * top that look misspelled, are refused; others are named in the header `X-Ignored-Keys`.
 */
export function unknownKeys(app: () => AnyElysia) {
  let bodies: Map<string, Body> | undefined
  return new Elysia({ name: 'unknown-keys' }).onTransform({ as: 'global' }, ({ body, request, route, set }) => {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return
    bodies ??= bodiesOf(app())
    const shape = bodies.get(`${request.method} ${route}`)
    if (!shape) return
    const ignored = checkBody(shape, body as Record<string, unknown>)
    if (ignored.length) set.headers['x-ignored-keys'] = headerOf(ignored)
  })
}

/** The shape of a body as keys: those that may be sent, and those that what comes back has. */
type Body = { shape: TSchema; known: readonly string[]; shown: Set<string> }

/** @throws 400 with every key that is refused */
function checkBody({ shape, known, shown }: Body, body: Record<string, unknown>): string[] {
  const flaws = listUnknownKeys(shape, body)
  const ignored: string[] = []
  const unknown = Object.keys(body).filter((key) => !known.includes(key) && !shown.has(key))
  for (const key of unknown.slice(0, MAX_COMPARED_KEYS)) {
    const meant = misspelled(key, known)
    if (meant !== undefined) flaws.push(unknownKey(`/${escaped(key)}`, meant))
    else ignored.push(key)
  }
  if (flaws.length) invalid(...flaws)
  return ignored
}

function bodiesOf({ routes }: AnyElysia): Map<string, Body> {
  const bodies = new Map<string, Body>()
  const answers = Map.groupBy(routes, ({ path }) => plainPath(path))
  for (const { method, path, hooks } of routes) {
    const shape = hooks.body as TSchema | undefined
    const known = shape ? keysOf(shape) : []
    if (!shape || !known.length) continue
    const shown = answers
      .get(plainPath(path))!
      .flatMap(({ hooks }) => answeredBy(hooks.response))
      .map(itemOf)
    const { ignored = [] } = policyOf(shape)
    bodies.set(`${method} ${path}`, { shape, known, shown: new Set([...shown.flatMap(keysOf), ...ignored]) })
  }
  return bodies
}

const plainPath = (path: string) => path.replace(/:\w+/g, ':').replace(/\/$/, '')

/** The shapes of the answers of a route that has done what it was asked. */
function answeredBy(response: object | undefined): TSchema[] {
  if (!response) return []
  const byStatus = Object.entries(response).filter(([status]) => /^2\d\d$/.test(status))
  return byStatus.length ? byStatus.map(([, shape]) => shape as TSchema) : [response as TSchema]
}

/** What a list is of; what is no list, itself. */
const itemOf = (shape: TSchema): TSchema => shape.items ?? shape

/** The keys that a shape names, of whichever of several things it may be. */
function keysOf(shape: TSchema): string[] {
  const { known = [] } = policyOf(shape)
  return [...known, ...Object.keys(shape.properties ?? {}), ...(shape.anyOf ?? []).flatMap(keysOf)]
}

const policyOf = (shape: TSchema): KeyPolicy => (shape as { [KEYS]?: KeyPolicy })[KEYS] ?? {}

const checks = new WeakMap<TSchema, Check | 'none'>()

/** How the strict parts of a shape are checked; undefined where it has none. */
function checkOf(shape: TSchema): Check | undefined {
  const known = checks.get(shape)
  if (known) return known === 'none' ? undefined : known
  const check = shape.anyOf ? ofUnion(shape.anyOf) : shape.type === 'array' ? ofArray(shape) : ofObject([shape])
  checks.set(shape, check ?? 'none')
  return check
}

function ofUnion(all: TSchema[]): Check | undefined {
  const objects = ofObject(all.filter(({ type }) => type === 'object'))
  const others = all.filter(({ type }) => type !== 'object').flatMap((one) => checkOf(one) ?? [])
  if (!objects && !others.length) return
  return (value, path, flaws, above) => {
    objects?.(value, path, flaws, above)
    for (const check of others) check(value, path, flaws, above)
  }
}

function ofArray({ items }: TSchema): Check | undefined {
  const check = items && checkOf(items)
  if (!check) return
  return (value, path, flaws, above) => {
    if (!Array.isArray(value)) return
    for (const [n, one] of value.entries()) {
      if (flaws.length > MAX_FLAWS) return
      check(one, `${path}/${n}`, flaws, above)
    }
  }
}

function ofObject(shapes: TSchema[]): Check | undefined {
  const properties = shapes.flatMap((shape) => Object.entries<TSchema>(shape.properties ?? {}))
  const named = Map.groupBy(properties, ([key]) => key)
  const inner = new Map([...named].flatMap(([key, all]) => mapped(key, allOf(all.map(([, shape]) => checkOf(shape))))))
  const others = allOf(
    shapes.flatMap(({ patternProperties = {} }) => Object.values<TSchema>(patternProperties)).map(checkOf),
  )
  const strict = shapes.some((shape) => policyOf(shape).strict)
  if (!strict && !inner.size && !others) return
  const keys = [...named.keys()]
  const ignored = shapes.flatMap((shape) => policyOf(shape).ignored ?? [])
  return (value, path, flaws, above) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return
    for (const [key, one] of Object.entries(value)) {
      if (flaws.length > MAX_FLAWS) return
      const at = `${path}/${escaped(key)}`
      const check = inner.get(key) ?? others
      if (check) check(one, at, flaws, [...above, { keys, at: path }])
      else if (strict && !named.has(key) && !ignored.includes(key)) flaws.push(strayKey(at, key, keys, above))
    }
  }
}

const mapped = (key: string, check: Check | undefined): [string, Check][] => (check ? [[key, check]] : [])

function allOf(all: (Check | undefined)[]): Check | undefined {
  const checks = all.filter((check) => check !== undefined)
  if (checks.length < 2) return checks[0]
  return (...args) => {
    for (const check of checks) check(...args)
  }
}

/** A key that a strict part does not have: what was meant, or where it belongs. */
function strayKey(path: string, key: string, known: readonly string[], above: Level[]): Flaw {
  const meant = nearestKey(key, known)
  if (meant !== undefined) return unknownKey(path, meant)
  const level = above.findLast(({ keys }) => keys.includes(key))
  if (level) {
    const [part = ''] = path.slice(level.at.length + 1).split('/')
    return { path, message: `${nameOf(path)} is unknown: \`${key}\` belongs beside \`${part}\`, not inside it.` }
  }
  const all = known.length ? ` Known here: ${known.join(', ')}.` : ''
  return { path, message: `${nameOf(path)} is unknown.${all}` }
}

const unknownKey = (path: string, meant: string): Flaw => ({
  path,
  message: `${nameOf(path)} is unknown. Did you mean \`${meant}\`?`,
})

/** The known key of which another one is nearly certainly a misspelling: the shorter it is, the less may differ. */
function misspelled(key: string, known: readonly string[]): string | undefined {
  if (known.includes(key)) return
  const longerThan = (length: number) => known.filter((name) => name.length > length)
  return nearestKey(key, known, 0) ?? nearestKey(key, longerThan(2), 1) ?? nearestKey(key, longerThan(5), 2)
}

const escaped = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1')

/** Keys as a header can have them, as many as there is room for. */
function headerOf(keys: string[]): string {
  const names = keys.map((key) => encodeURIComponent(key.slice(0, MAX_HEADER_KEY_LENGTH).toWellFormed()))
  let header = ''
  for (const name of names) {
    if (header.length + name.length + 2 > MAX_HEADER_LENGTH) return header ? `${header}, ...` : '...'
    header += header ? `, ${name}` : name
  }
  return header
}
