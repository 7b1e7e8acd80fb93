import { type Model, pendingModelOf } from '../../blueprints/model'
import { type Caller, mayReadField, mayWriteField } from '../../blueprints/permissions'
import { badRequest, type FieldError, Problem } from '../../core/problem'
import { suggestName } from '../../core/unknown-keys'
import type { Doc } from '../store/doc'
import { isComputed } from './computed-fields'
import { findPendingErrors } from './pending-document'

/** The parsed body of an entity: its properties, and the owners, which only privileged callers may set. */
export type ParsedBody = {
  properties: Doc
  /** Properties that the body gives twice: the value at the top level, and the one in `metadata`. */
  conflicts: Map<string, [unknown, unknown]>
  /** The identifier as it was sent; it is used only for a new entity. */
  identifier?: unknown
  user?: string | null
  workspace?: string | null
}

const IGNORED_KEYS = new Set(['_id', 'created', 'updated', 'blueprint', 'tenant', 'id', 'metadata'])
/** Properties that only privileged callers may set. */
export const OWNER_KEYS = new Set(['user', 'workspace'])

/** Parses a body with properties at the top level, under `metadata` or both. @throws 400 when it is not an object */
export function parseBody(body: unknown, actor: Caller | undefined): ParsedBody {
  const flat = requireObject(body, '')
  const metadata = flat.metadata === undefined ? {} : requireObject(flat.metadata, '/metadata')
  const input: ParsedBody = { properties: { ...metadata }, conflicts: new Map() }
  for (const key in flat) {
    const value = flat[key]
    if (key === 'identifier') input.identifier = value
    else if (OWNER_KEYS.has(key)) {
      if (actor?.privileged) input[key as 'user' | 'workspace'] = parseOwner(key, value)
    } else if (IGNORED_KEYS.has(key)) continue
    else {
      if (Object.hasOwn(metadata, key)) input.conflicts.set(key, [value, metadata[key]])
      input.properties[key] = value
    }
  }
  return input
}

/**
 * Returns the document of a new entity with its defaults, without its computed properties.
 * @throws 400 with all errors; 403 for a field that the caller may not write
 */
export function createDocument(model: Model, { properties, conflicts }: ParsedBody, actor: Caller | undefined): Doc {
  const flaws: FieldError[] = []
  for (const [key, [one, other]] of conflicts)
    if (!isComputed(model, key) && !Bun.deepEquals(one, other)) flaws.push(contradictionError(key))
  const doc = mergeDocument(model, {}, properties, actor, flaws, {})
  for (const { key, default: value } of model.fields)
    if (doc[key] === undefined && value !== undefined && value !== null && properties[key] === undefined)
      doc[key] = structuredClone(value)
  return validateDocument(model, doc, flaws, actor)
}

/**
 * Returns the document after a change, without its computed properties, and the stored properties that values may be
 * compared with. A value equal to the stored one is not a change, so that callers can send back what they have read.
 * Values that the caller may not read are not compared (with `isReadable` false, none of the entity), because the
 * response would reveal them. @throws 400 with all errors; 403 for a field that the caller may not write
 */
export function updateDocument(
  model: Model,
  stored: Doc,
  { properties, conflicts }: ParsedBody,
  actor: Caller | undefined,
  isReadable: boolean,
) {
  const flaws: FieldError[] = []
  const comparable = Object.fromEntries(
    Object.entries(stored).filter(([key]) => {
      const field = model.field.get(key)
      return !Object.hasOwn(properties, key) || (isReadable && !!field && mayReadField(field, actor))
    }),
  )
  const sent = { ...properties }
  for (const [key, [flat, inner]] of conflicts) {
    if (isComputed(model, key) || Bun.deepEquals(flat, inner)) continue
    if (!isReadable || !Object.hasOwn(comparable, key)) flaws.push(contradictionError(key))
    else if (Bun.deepEquals(flat, comparable[key])) sent[key] = inner
    else if (!Bun.deepEquals(inner, comparable[key])) flaws.push(contradictionError(key))
  }
  const doc = mergeDocument(model, stored, sent, actor, flaws, comparable)
  return { doc: validateDocument(model, doc, flaws, actor), comparable }
}

function mergeDocument(
  model: Model,
  stored: Doc,
  sent: Doc,
  actor: Caller | undefined,
  flaws: FieldError[],
  comparable: Doc,
): Doc {
  const doc = { ...stored }
  for (const key in sent) {
    const value = sent[key]
    const field = model.field.get(key)
    if (!field) {
      flaws.push({ path: `/${key}`, message: unknownPropertyMessage(model, actor, key) })
      continue
    }
    // Computed properties are ignored, so that callers can send back what they have read.
    if (isComputed(model, key)) continue
    if (Object.hasOwn(comparable, key) && Bun.deepEquals(value, comparable[key])) continue
    if (!mayWriteField(field, actor))
      throw new Problem(403, 'FORBIDDEN', `Your roles do not allow you to write "${key}".`)
    if (value === null) delete doc[key]
    else {
      doc[key] = value
      for (const { path, message } of field.validate(value))
        flaws.push({ path: `/${key}${path}`, message: `${key} ${message}.` })
    }
  }
  return doc
}

/** Returns the message for an unknown property. It suggests a similar field that the caller may read or write. */
export function unknownPropertyMessage(model: Model, actor: Caller | undefined, name: string): string {
  const visible = model.fields
    .filter((field) => mayReadField(field, actor) || mayWriteField(field, actor))
    .map(({ key }) => key)
  const suggestion = suggestName(name, [...visible, 'identifier', 'workspace'])
  return `The blueprint "${model.key}" has no field "${name}".${suggestion}`
}

function validateDocument(model: Model, doc: Doc, flaws: FieldError[], actor: Caller | undefined): Doc {
  for (const field of model.fields) {
    const { key, required } = field
    if (!required || doc[key] !== undefined || isComputed(model, key)) continue
    if (mayReadField(field, actor) || mayWriteField(field, actor))
      flaws.push({ path: `/${key}`, message: `${key} is required.` })
    else throw new Problem(403, 'FORBIDDEN', 'A required property cannot be written with your roles.')
  }
  const pending = pendingModelOf(model)
  if (pending) flaws.push(...findPendingErrors(pending, doc, actor))
  if (flaws.length) badRequest(...flaws.slice(0, 100))
  return doc
}

const contradictionError = (key: string): FieldError => ({
  path: `/metadata/${key}`,
  message: `${key} is given twice with different values. Give it once, at the top level or in "metadata".`,
})

function requireObject(value: unknown, path: string): Doc {
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    badRequest({ path, message: path ? 'metadata must be an object.' : 'The body must be a JSON object.' })
  return value as Doc
}

/** Path segments that stand in the place of an identifier. */
const RESERVED_IDENTIFIERS = ['all', 'export', 'changes']

/** Returns the identifier for a new entity, or undefined when none is given. @throws 400 */
export function parseIdentifier(value: unknown, path = '/identifier'): string | undefined {
  if (value === null || value === undefined || value === '') return
  if (typeof value !== 'string' || !/^(?!(\.{1,2}|\ufffd)$)[^\s/]{1,128}$/.test(value))
    badRequest({ path, message: 'identifier must be 1 to 128 characters without spaces or slashes.' })
  if (RESERVED_IDENTIFIERS.includes(value as string))
    badRequest({ path, message: `"${value}" is a reserved identifier. Choose another one.` })
  return value as string
}

function parseOwner(key: string, value: unknown): string | null {
  if (value !== null && (typeof value !== 'string' || !/^\P{Cc}{1,128}$/u.test(value)))
    badRequest({ path: `/${key}`, message: `${key} must be an id or null.` })
  return value as string | null
}
