import type { TSchema } from '@sinclair/typebox'
import { type AnyElysia, Elysia } from 'elysia'
import { findNearestKey } from './nearest-key'
import { badRequest } from './problem'
import { KEY_POLICY, type KeyPolicy } from './schema-annotations'
import { type FieldError, fieldNameOf, MAX_FIELD_ERRORS } from './validation'
import { weakCached } from './weak-cache'

const MAX_HEADER_LENGTH = 500
const MAX_HEADER_KEY_LENGTH = 64
const MAX_COMPARED_KEYS = 200 // of a body

/** The keys of an object and its path, to suggest where a misplaced key belongs. */
type KeyLevel = { keys: readonly string[]; at: string }
type KeyCheck = (value: unknown, path: string, errors: FieldError[], above: KeyLevel[]) => void

/** Returns the errors about the keys of a value's strict objects. `at` is the prefix of the paths. */
export function listUnknownKeys(shape: TSchema, value: unknown, at = '', above: KeyLevel[] = []): FieldError[] {
  const errors: FieldError[] = []
  getKeyCheck(shape)?.(value, at, errors, above)
  return errors
}

/** Returns errors for keys that look like misspellings of known ones; keys of `exempt` are skipped. */
export const listMisspelledKeys = (
  value: object,
  known: readonly string[],
  at = '',
  exempt: object = {},
): FieldError[] =>
  Object.keys(value).flatMap((key) => {
    const meant = Object.hasOwn(exempt, key) ? undefined : findIntendedKey(key, known)
    return meant === undefined ? [] : [toUnknownKeyError(`${at}/${escapePointer(key)}`, meant)]
  })

/** Returns an error for each key that is not known, with the key that was probably meant. */
export const listStrayKeys = (value: object, known: readonly string[], at = ''): FieldError[] =>
  Object.keys(value)
    .filter((key) => !known.includes(key))
    .map((key) => toStrayKeyError(`${at}/${escapePointer(key)}`, key, known, []))

/** Returns a suggestion to append to a message about an unknown name, or an empty text. */
export const suggestName = (name: string, known: readonly string[]): string => {
  const meant = findNearestKey(name, known)
  return meant === undefined ? '' : ` Did you mean \`${meant}\`?`
}

/**
 * Checks the keys of each body before its shape removes unknown ones. Unknown keys of strict objects, and keys at the
 * top level that look misspelled, are refused; others are listed in the header `X-Ignored-Keys`.
 * @throws 400 INVALID_INPUT with every key that is refused
 */
export function rejectUnknownKeys(app: () => AnyElysia) {
  let keysByRoute: Map<string, BodyKeys> | undefined
  return new Elysia({ name: 'unknown-keys' }).onTransform({ as: 'global' }, ({ body, request, route, set }) => {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return
    keysByRoute ??= collectBodyKeys(app())
    const shape = keysByRoute.get(`${request.method} ${route}`)
    if (!shape) return
    const ignored = requireKnownKeys(shape, body as Record<string, unknown>)
    if (ignored.length) set.headers['x-ignored-keys'] = toHeaderValue(ignored)
  })
}

/** The shape of a body, the keys that may be sent, and the keys of the route's responses. */
type BodyKeys = { shape: TSchema; known: readonly string[]; returned: Set<string> }

/** Returns the keys to ignore. @throws 400 INVALID_INPUT with every key that is refused */
function requireKnownKeys({ shape, known, returned }: BodyKeys, body: Record<string, unknown>): string[] {
  // Whoever sends back what they read may do so where unknown keys are refused, too.
  const errors = listUnknownKeys(shape, body).filter(({ path }) => !returned.has(path.slice(1)))
  const ignored: string[] = []
  const { unsupported = [] } = policyOf(shape)
  const unknown = Object.keys(body).filter((key) => ![...known, ...unsupported].includes(key) && !returned.has(key))
  for (const key of unknown.slice(0, MAX_COMPARED_KEYS)) {
    const meant = findIntendedKey(key, known)
    if (meant !== undefined) errors.push(toUnknownKeyError(`/${escapePointer(key)}`, meant))
    else ignored.push(key)
  }
  if (errors.length) badRequest(...errors)
  return ignored
}

function collectBodyKeys({ routes }: AnyElysia): Map<string, BodyKeys> {
  const bodies = new Map<string, BodyKeys>()
  const routesByPath = Map.groupBy(routes, ({ path }) => normalizePath(path))
  for (const { method, path, hooks } of routes) {
    const shape = hooks.body as TSchema | undefined
    const known = shape ? keysOf(shape) : []
    if (!shape || !known.length) continue
    const returned = routesByPath
      .get(normalizePath(path))!
      .flatMap(({ hooks }) => successShapesOf(hooks.response))
      .map(itemOf)
    const { ignored = [] } = policyOf(shape)
    bodies.set(`${method} ${path}`, { shape, known, returned: new Set([...returned.flatMap(keysOf), ...ignored]) })
  }
  return bodies
}

const normalizePath = (path: string) => path.replace(/:\w+/g, ':').replace(/\/$/, '')

/** Returns the shapes of a route's successful responses. */
function successShapesOf(response: object | undefined): TSchema[] {
  if (!response) return []
  const byStatus = Object.entries(response).filter(([status]) => /^2\d\d$/.test(status))
  return byStatus.length ? byStatus.map(([, shape]) => shape as TSchema) : [response as TSchema]
}

/** Returns the shape of a list's items; any other shape is returned unchanged. */
const itemOf = (shape: TSchema): TSchema => shape.items ?? shape

/** Returns the keys that a shape names; of a union, the keys of all branches. */
function keysOf(shape: TSchema): string[] {
  const { known = [] } = policyOf(shape)
  return [...known, ...Object.keys(shape.properties ?? {}), ...(shape.anyOf ?? []).flatMap(keysOf)]
}

const policyOf = (shape: TSchema): KeyPolicy => (shape as { [KEY_POLICY]?: KeyPolicy })[KEY_POLICY] ?? {}

/** Returns the check of a shape's strict objects, or undefined when it has none. */
const getKeyCheck = weakCached((shape: TSchema): KeyCheck | undefined => {
  if (shape.anyOf) return createUnionCheck(shape.anyOf)
  return shape.type === 'array' ? createArrayCheck(shape) : createObjectCheck([shape])
})

function createUnionCheck(shapes: TSchema[]): KeyCheck | undefined {
  const objects = createObjectCheck(shapes.filter(({ type }) => type === 'object'))
  const others = shapes.filter(({ type }) => type !== 'object').flatMap((shape) => getKeyCheck(shape) ?? [])
  if (!objects && !others.length) return
  return (value, path, errors, above) => {
    objects?.(value, path, errors, above)
    for (const check of others) check(value, path, errors, above)
  }
}

function createArrayCheck({ items }: TSchema): KeyCheck | undefined {
  const check = items && getKeyCheck(items)
  if (!check) return
  return (value, path, errors, above) => {
    if (!Array.isArray(value)) return
    for (const [n, item] of value.entries()) {
      if (errors.length > MAX_FIELD_ERRORS) return
      check(item, `${path}/${n}`, errors, above)
    }
  }
}

function createObjectCheck(shapes: TSchema[]): KeyCheck | undefined {
  const properties = shapes.flatMap((shape) => Object.entries<TSchema>(shape.properties ?? {}))
  const named = Map.groupBy(properties, ([key]) => key)
  const checkByKey = new Map(
    [...named].flatMap(([key, all]) => toEntries(key, combineChecks(all.map(([, shape]) => getKeyCheck(shape))))),
  )
  const patternCheck = combineChecks(
    shapes.flatMap(({ patternProperties = {} }) => Object.values<TSchema>(patternProperties)).map(getKeyCheck),
  )
  const isStrict = shapes.some((shape) => policyOf(shape).strict)
  const unsupported = shapes.flatMap((shape) => policyOf(shape).unsupported ?? [])
  if (!isStrict && !checkByKey.size && !patternCheck && !unsupported.length) return
  const keys = [...named.keys(), ...shapes.flatMap((shape) => policyOf(shape).known ?? [])]
  const ignored = shapes.flatMap((shape) => policyOf(shape).ignored ?? [])
  return (value, path, errors, above) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return
    for (const [key, property] of Object.entries(value)) {
      if (errors.length > MAX_FIELD_ERRORS) return
      const at = `${path}/${escapePointer(key)}`
      const check = checkByKey.get(key) ?? patternCheck
      if (check) check(property, at, errors, [...above, { keys, at: path }])
      else if (unsupported.includes(key)) errors.push({ path: at, message: `${fieldNameOf(at)} is not supported.` })
      else if (isStrict && !keys.includes(key) && !ignored.includes(key))
        errors.push(toStrayKeyError(at, key, keys, above))
    }
  }
}

const toEntries = (key: string, check: KeyCheck | undefined): [string, KeyCheck][] => (check ? [[key, check]] : [])

function combineChecks(candidates: (KeyCheck | undefined)[]): KeyCheck | undefined {
  const checks = candidates.filter((check) => check !== undefined)
  if (checks.length < 2) return checks[0]
  return (...args) => {
    for (const check of checks) check(...args)
  }
}

/**
 * Returns the error for an unknown key of a strict object, with the key that was meant or the object where it belongs.
 */
function toStrayKeyError(path: string, key: string, known: readonly string[], above: KeyLevel[]): FieldError {
  const meant = findNearestKey(key, known)
  if (meant !== undefined) return toUnknownKeyError(path, meant)
  const level = above.findLast(({ keys }) => keys.includes(key))
  if (level) {
    const [part = ''] = path.slice(level.at.length + 1).split('/')
    return { path, message: `${fieldNameOf(path)} is unknown: \`${key}\` belongs beside \`${part}\`, not inside it.` }
  }
  const knownKeys = known.length ? ` Known here: ${known.join(', ')}.` : ''
  return { path, message: `${fieldNameOf(path)} is unknown.${knownKeys}` }
}

const toUnknownKeyError = (path: string, meant: string): FieldError => ({
  path,
  message: `${fieldNameOf(path)} is unknown. Did you mean \`${meant}\`?`,
})

/** Returns the known key that is almost certainly meant: the shorter it is, the less may differ. */
function findIntendedKey(key: string, known: readonly string[]): string | undefined {
  if (known.includes(key)) return
  const longerThan = (length: number) => known.filter((name) => name.length > length)
  return findNearestKey(key, known, 0) ?? findNearestKey(key, longerThan(2), 1) ?? findNearestKey(key, longerThan(5), 2)
}

const escapePointer = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1')

/** Returns the keys as a header value, as many as fit. */
function toHeaderValue(keys: string[]): string {
  const names = keys.map((key) => encodeURIComponent(key.slice(0, MAX_HEADER_KEY_LENGTH).toWellFormed()))
  let header = ''
  for (const name of names) {
    if (header.length + name.length + 2 > MAX_HEADER_LENGTH) return header ? `${header}, ...` : '...'
    header += header ? `, ${name}` : name
  }
  return header
}
