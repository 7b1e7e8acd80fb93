import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'
import type { Flaw } from '../core/problem'
import { re2 } from '../core/re2'
import type { Alteration } from './alteration'
import { boundOf, type FieldType, fieldType } from './fields/type'
import { types } from './fields/types'
import type { Formula } from './formulas/formula'
import type { Definition, Field } from './shapes'

/** A field, ready to check values and to find them. */
export type ModelField = Field & {
  /** Stands for the field in the index. */
  number: number
  kind: FieldType
  /** Every flaw of a value (never null or undefined): where in it, and the end of a sentence. */
  flaws(value: unknown): Flaw[]
}

/** A blueprint as code uses it. */
export type Model = Omit<Definition, 'fields'> & {
  _id: string
  tenant: string
  key: string
  name: string
  description: string
  version: number
  created: string
  updated: string
  fields: ModelField[]
  field: Map<string, ModelField>
  /** How its computed fields come by their values, in the order of the fields. */
  formulas: { field: ModelField; formula: Formula }[]
  /** Whether some field is hidden from some callers. */
  guarded: boolean
  /** Which alteration of its entities is in force. */
  form: number
  /** The last one, while it is under way, or when it was given up. */
  alteration?: Underway
}

/** An alteration of entities; until it is in force, with what the blueprint will be then. */
export type Underway = Coming | { form: number; state: 'cleaning' | 'failed' }
export type Coming = { form: number; state: 'preparing'; alteration: Alteration; next: Model }

/** What is to come. */
export const comingOf = ({ alteration }: Model): Coming | undefined =>
  alteration?.state === 'preparing' ? alteration : undefined

/** Whether entities may have something that is not in force yet, or not any more. */
export const isAltering = ({ alteration }: Model) => !!alteration && alteration.state !== 'failed'

/** Makes fields ready. @throws what Ajv or RE2 say of a schema or a pattern that is none. */
export async function ready(field: Field, number: number): Promise<ModelField> {
  const kind = types[field.type] as FieldType
  const matches = field.pattern === undefined ? undefined : matcher(field.pattern)
  const choices = field.enum && new Set(field.enum.map((choice) => JSON.stringify(choice)))
  const conforms = field.schema && (await compiled(field.schema))

  function bounds(value: unknown, kind: FieldType): string | undefined {
    const { min, max } = field
    if (min === undefined && max === undefined) return
    if (kind.bounds === 'value' && kind.key) {
      const key = kind.key(value)
      if (min !== undefined && key < kind.key(boundOf(kind, min))) return `must be at least ${min}`
      if (max !== undefined && key > kind.key(boundOf(kind, max))) return `must be at most ${max}`
    } else if (kind.bounds === 'length') {
      const length = Array.isArray(value) ? value.length : [...(value as string)].length
      const things = Array.isArray(value) ? 'values' : 'characters'
      if (min !== undefined && length < Number(min)) return `must have at least ${min} ${things}`
      if (max !== undefined && length > Number(max)) return `must have at most ${max} ${things}`
    }
  }

  function flawsOf(value: unknown, path: string): Flaw[] {
    const misfit =
      kind.check(value) ?? (kind.key || sizeOf(value) <= PARTS ? undefined : `must have at most ${PARTS} parts`)
    if (misfit) return [{ path, message: misfit }]
    const found: Flaw[] = []
    if (choices && !choices.has(JSON.stringify(value)))
      found.push({ path, message: `must be one of ${told(field.enum)}` })
    if (matches && !matches(value as string)) found.push({ path, message: `must match the pattern ${field.pattern}` })
    const bound = field.multi ? undefined : bounds(value, kind)
    if (bound) found.push({ path, message: bound })
    if (conforms && !conforms(value))
      for (const error of conforms.errors ?? [])
        found.push({ path: path + pointer(error), message: error.message ?? 'does not fit' })
    return found
  }

  function flaws(value: unknown) {
    if (!field.multi) return flawsOf(value, '')
    if (!Array.isArray(value)) return [{ path: '', message: 'must be a list' }]
    if (value.length > LIST) return [{ path: '', message: `must have at most ${LIST} values` }]
    const bound = bounds(value, list)
    const found: Flaw[] = bound ? [{ path: '', message: bound }] : []
    for (const [index, part] of value.entries()) {
      if (found.length >= FLAWS) break
      found.push(...flawsOf(part, `/${index}`))
    }
    return found
  }
  return { ...field, number, kind, flaws }
}

const PARTS = 10_000 // of an object; checking takes as long as its schema times these

function sizeOf(value: unknown): number {
  if (value === null || typeof value !== 'object') return 1
  let size = 1
  for (const part of Object.values(value)) size += sizeOf(part)
  return size
}

const LIST = 2_000 // values of a field
const FLAWS = 100

const told = (choices: unknown[] = []) => {
  const text = JSON.stringify(choices).slice(1, -1)
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}

const list = fieldType<unknown[]>({ typescript: 'unknown[]', check: () => undefined, bounds: 'length' })

const pointer = ({ instancePath, keyword, params }: ErrorObject) =>
  keyword === 'required' ? `${instancePath}/${params.missingProperty}` : instancePath

const PATTERNED = 2_000 // characters
const PROGRAM = 1_000 // steps of the compiled pattern

/**
 * RE2 takes a time in proportion to the text, whatever the pattern; but the proportion can be large, so long texts match
 * none.
 */
const matcher = (pattern: string) => {
  const compiled = re2().compile(pattern)
  if (compiled.programSize() > PROGRAM) throw new Error('it is too large. Repeat fewer things, or less often.')
  return (text: string) => text.length <= PATTERNED && compiled.matcher(text).find()
}
// Ajv tells patterns apart by their text.
const linear = Object.assign((pattern: string) => ({ test: matcher(pattern), toString: () => pattern }), {
  code: 'linear',
})

const NODES = 500

/**
 * A schema with its references written out, so that it is as large as the work that it asks for.
 * @throws for one that is too large then, or refers to itself, or would answer when nobody waits any more
 */
export function unfolded(schema: Record<string, unknown>): Record<string, unknown> {
  let nodes = 0
  const unfold = (node: unknown): unknown => {
    if (++nodes > NODES) throw new Error(`with its references written out it has more than ${NODES} parts.`)
    if (Array.isArray(node)) return node.map(unfold)
    if (node === null || typeof node !== 'object') return node
    for (const word of ['$async', '$dynamicRef', '$recursiveRef'])
      if (
        typeof (node as Record<string, unknown>)[word] === 'boolean' ||
        typeof (node as Record<string, unknown>)[word] === 'string'
      )
        throw new Error(`"${word}" is not taken here.`)
    // What would make Ajv remember it, or read it by other rules.
    const { $ref, $id: _, $schema: __, $anchor: ___, ...rest } = node as Record<string, unknown>
    if (typeof $ref !== 'string')
      return Object.fromEntries(
        Object.entries($ref === undefined ? rest : node).map(([key, part]) => [key, unfold(part)]),
      )
    const { allOf = [], ...others } = unfold(rest) as { allOf?: unknown[] }
    return { ...others, allOf: [...allOf, unfold(pointed(schema, $ref))] }
  }
  const { definitions: _, $defs: __, ...whole } = unfold(schema) as Record<string, unknown>
  return whole
}

function pointed(schema: unknown, reference: string): unknown {
  if (!/^#(\/|$)/.test(reference))
    throw new Error(`"$ref" may lead only to a part of the same schema, not to "${reference}".`)
  const steps = reference
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
  let at = schema
  for (const step of steps) {
    if (at === null || typeof at !== 'object' || !Object.hasOwn(at, step))
      throw new Error(`"${reference}" leads nowhere.`)
    at = (at as Record<string, unknown>)[step]
  }
  return at
}

const SHARED = 200 // schemas; making an Ajv takes 10 ms, but each remembers parts of all that it compiled
// The largest takes 150 ms; between any two, others get their turn.
let turn = Promise.resolve<unknown>(undefined)
let shared: { ajv: Promise<Ajv>; left: number } | undefined

/** Ajv is loaded when the first schema is. The compiled function goes with its field. */
async function compiled(schema: Record<string, unknown>): Promise<ValidateFunction> {
  if (!shared?.left) shared = { ajv: made(), left: SHARED }
  shared.left--
  const [ajv, whole] = [await shared.ajv, unfolded(schema)]
  turn = turn.then(() => new Promise(setImmediate))
  await turn
  try {
    return ajv.compile(whole)
  } finally {
    ajv.removeSchema(whole)
  }
}

async function made(): Promise<Ajv> {
  const { Ajv } = await import('ajv')
  const ajv = new Ajv({ strict: false, logger: false, validateFormats: false, code: { regExp: linear } })
  // Ajv's own compares each with each.
  ajv.removeKeyword('uniqueItems')
  const validate = (wanted: boolean, list: unknown[]) =>
    !wanted || new Set(list.map((one) => JSON.stringify(one))).size === list.length
  return ajv.addKeyword({ keyword: 'uniqueItems', type: 'array', schemaType: 'boolean', validate })
}
