import { comingOf, type Model } from '../blueprints/model'
import { type Caller, mayRead, mayWrite } from '../blueprints/rules'
import { type Flaw, invalid, Problem } from '../core/problem'
import { suggestionOf } from '../core/unknown-keys'
import { misfits } from './altering/altered'

export type Doc = Record<string, unknown>

declare const complete: unique symbol
/** A document with everything that is computed, as `computed` makes it: only such are kept. */
export type Complete = Doc & { [complete]: true }

/** What a body says of an entity: its properties, and what only some may set. */
export type Input = {
  properties: Doc
  /** Properties that the body gives twice, beside `metadata` and in it, in this order. */
  twice: Map<string, [unknown, unknown]>
  /** As it was sent; only a new entity's counts. */
  identifier?: unknown
  user?: string | null
  workspace?: string | null
}

const IGNORED = ['_id', 'created', 'updated', 'blueprint', 'tenant', 'id', 'metadata']
const OWN = ['user', 'workspace']

/** Takes a body apart, flat or under `metadata` or both. @throws 400 for what is no object, or names no property. */
export function readInput(body: unknown, actor: Caller | undefined): Input {
  const flat = asObject(body, '')
  const metadata = flat.metadata === undefined ? {} : asObject(flat.metadata, '/metadata')
  const input: Input = { properties: { ...metadata }, twice: new Map() }
  for (const key in flat) {
    const value = flat[key]
    if (key === 'identifier') input.identifier = value
    else if (OWN.includes(key)) {
      if (actor?.privileged) input[key as 'user' | 'workspace'] = owner(key, value)
    } else if (IGNORED.includes(key)) continue
    else {
      if (Object.hasOwn(metadata, key)) input.twice.set(key, [value, metadata[key]])
      input.properties[key] = value
    }
  }
  return input
}

/** The document of a new entity, with its defaults, but for what is computed. @throws 400 with every flaw, 403 for a field not to be written. */
export function newDocument(model: Model, { properties, twice }: Input, actor: Caller | undefined): Doc {
  const flaws: Flaw[] = []
  for (const [key, [one, other]] of twice)
    if (!isComputed(model, key) && !Bun.deepEquals(one, other)) flaws.push(contradicting(key))
  const doc = merged(model, {}, properties, actor, flaws, {})
  for (const { key, default: value } of model.fields)
    if (doc[key] === undefined && value !== undefined && value !== null && properties[key] === undefined)
      doc[key] = structuredClone(value)
  return refuseFlawed(model, doc, flaws, actor)
}

/**
 * The document after a change, but for what is computed, and what of the stored one it may be compared with. A value equal to the stored one is no
 * change, so what was read can be sent back; but of what the caller may not read (`seen`: this entity at all), comparing
 * would tell by the answer what is there.
 */
export function changedDocument(
  model: Model,
  stored: Doc,
  { properties, twice }: Input,
  actor: Caller | undefined,
  seen: boolean,
) {
  const flaws: Flaw[] = []
  const comparable = Object.fromEntries(
    Object.entries(stored).filter(([key]) => {
      const field = model.field.get(key)
      return !Object.hasOwn(properties, key) || (seen && !!field && mayRead(field, actor))
    }),
  )
  const sent = { ...properties }
  for (const [key, [flat, inner]] of twice) {
    if (isComputed(model, key) || Bun.deepEquals(flat, inner)) continue
    if (!seen || !Object.hasOwn(comparable, key)) flaws.push(contradicting(key))
    else if (Bun.deepEquals(flat, comparable[key])) sent[key] = inner
    else if (!Bun.deepEquals(inner, comparable[key])) flaws.push(contradicting(key))
  }
  const doc = merged(model, stored, sent, actor, flaws, comparable)
  return { doc: refuseFlawed(model, doc, flaws, actor), comparable }
}

function merged(model: Model, stored: Doc, sent: Doc, actor: Caller | undefined, flaws: Flaw[], comparable: Doc): Doc {
  const doc = { ...stored }
  for (const key in sent) {
    const value = sent[key]
    const field = model.field.get(key)
    if (!field) {
      flaws.push({ path: `/${key}`, message: unknownField(model, actor, key) })
      continue
    }
    // What was read can be sent back, though it may come out different now.
    if (isComputed(model, key)) continue
    if (Object.hasOwn(comparable, key) && Bun.deepEquals(value, comparable[key])) continue
    if (!mayWrite(field, actor)) throw new Problem(403, 'FORBIDDEN', `Your roles do not allow you to write "${key}".`)
    if (value === null) delete doc[key]
    else {
      doc[key] = value
      for (const { path, message } of field.flaws(value))
        flaws.push({ path: `/${key}${path}`, message: `${key} ${message}.` })
    }
  }
  return doc
}

/** What is said of a name that no field has: the one that was probably meant, of those the caller knows. */
export function unknownField(model: Model, actor: Caller | undefined, name: string): string {
  const seen = model.fields.filter((field) => mayRead(field, actor) || mayWrite(field, actor)).map(({ key }) => key)
  const meant = suggestionOf(name, [...seen, 'identifier', 'workspace'])
  return `The blueprint "${model.key}" has no field "${name}".${meant}`
}

/** Whether callers don't set a property, because its blueprint does. */
export const isComputed = ({ computed }: Model, key: string) => !!computed && Object.hasOwn(computed, key)

function refuseFlawed(model: Model, doc: Doc, flaws: Flaw[], actor: Caller | undefined): Doc {
  for (const field of model.fields) {
    const { key, required } = field
    if (!required || doc[key] !== undefined || isComputed(model, key)) continue
    if (mayRead(field, actor) || mayWrite(field, actor)) flaws.push({ path: `/${key}`, message: `${key} is required.` })
    else
      throw new Problem(403, 'FORBIDDEN', 'These entities need a property that your roles do not allow you to write.')
  }
  const coming = comingOf(model)
  if (coming) flaws.push(...misfits(coming, doc, actor))
  if (flaws.length) invalid(...flaws.slice(0, 100))
  return doc
}

const contradicting = (key: string): Flaw => ({
  path: `/metadata/${key}`,
  message: `${key} is given twice, with different values. Give it once, beside "metadata" or in it.`,
})

function asObject(value: unknown, path: string): Doc {
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    invalid({ path, message: path ? 'metadata must be an object.' : 'Send an entity as a JSON object.' })
  return value as Doc
}

/** What stands in an address where an identifier could. */
const TAKEN = ['all', 'export', 'changes']

/** The identifier that a new entity is to have. */
export function identifierOf(value: unknown, path = '/identifier'): string | undefined {
  if (value === null || value === undefined || value === '') return
  if (typeof value !== 'string' || !/^(?!(\.{1,2}|\ufffd)$)[^\s/]{1,128}$/.test(value))
    invalid({ path, message: 'identifier must be 1 to 128 characters without spaces and slashes.' })
  if (TAKEN.includes(value as string))
    invalid({ path, message: `"${value}" means something else in an address. Choose another identifier.` })
  return value as string
}

function owner(key: string, value: unknown): string | null {
  if (value !== null && (typeof value !== 'string' || !value || value.length > 128))
    invalid({ path: `/${key}`, message: `${key} must be an id or null.` })
  return value as string | null
}
