import type { ErrorObject, ValidateFunction } from 'ajv'
import { RE2JS } from 're2js'
import type { Flaw } from '../core/problem'
import { type FieldType, fieldType } from './fields/type'
import { types } from './fields/types'
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
  key: string
  name: string
  description: string
  version: number
  created: string
  updated: string
  fields: ModelField[]
  field: Map<string, ModelField>
  /** Whether some field is hidden from some callers. */
  guarded: boolean
}

/** Makes fields ready. @throws what Ajv or RE2 say of a schema or a pattern that is none. */
export async function ready(field: Field, number: number): Promise<ModelField> {
  const kind = types[field.type] as FieldType
  const pattern = field.pattern === undefined ? undefined : RE2JS.compile(field.pattern)
  const conforms = field.schema && (await compiled(field.schema))

  function bounds(value: unknown, kind: FieldType): string | undefined {
    const { min, max } = field
    if (kind.bounds === 'value' && kind.key) {
      const key = kind.key(value)
      if (min !== undefined && key < kind.key(min)) return `must be at least ${min}`
      if (max !== undefined && key > kind.key(max)) return `must be at most ${max}`
    } else if (kind.bounds === 'length') {
      const length = Array.isArray(value) ? value.length : [...(value as string)].length
      const things = Array.isArray(value) ? 'values' : 'characters'
      if (min !== undefined && length < Number(min)) return `must have at least ${min} ${things}`
      if (max !== undefined && length > Number(max)) return `must have at most ${max} ${things}`
    }
  }

  function* flawsOf(value: unknown, path: string): Generator<Flaw> {
    const misfit = kind.check(value)
    if (misfit) {
      yield { path, message: misfit }
      return
    }
    if (field.enum && !field.enum.some((choice) => Bun.deepEquals(choice, value)))
      yield { path, message: `must be one of ${JSON.stringify(field.enum).slice(1, -1)}` }
    if (pattern && !pattern.matcher(value as string).find())
      yield { path, message: `must match the pattern ${field.pattern}` }
    const bound = field.multi ? undefined : bounds(value, kind)
    if (bound) yield { path, message: bound }
    if (conforms && !conforms(value))
      for (const error of conforms.errors ?? [])
        yield { path: path + pointer(error), message: error.message ?? 'does not fit' }
  }

  function flaws(value: unknown) {
    if (!field.multi) return [...flawsOf(value, '')]
    if (!Array.isArray(value)) return [{ path: '', message: 'must be a list' }]
    const bound = bounds(value, list)
    return [
      ...(bound ? [{ path: '', message: bound }] : []),
      ...value.flatMap((part, index) => [...flawsOf(part, `/${index}`)]).slice(0, 100),
    ]
  }
  return { ...field, number, kind, flaws }
}

const list = fieldType<unknown[]>({ check: () => undefined, bounds: 'length' })

const pointer = ({ instancePath, keyword, params }: ErrorObject) =>
  keyword === 'required' ? `${instancePath}/${params.missingProperty}` : instancePath

/** RE2 takes a time in proportion to the text, whatever the pattern. */
const linear = Object.assign(
  (pattern: string) => {
    const compiled = RE2JS.compile(pattern)
    return { test: (text: string) => compiled.matcher(text).find() }
  },
  { code: 'linear' },
)

/** Ajv is loaded when the first object field is, and each schema has one of its own, which goes when the field goes. */
async function compiled(schema: Record<string, unknown>): Promise<ValidateFunction> {
  const { Ajv } = await import('ajv')
  return new Ajv({
    strict: false,
    allErrors: false,
    logger: false,
    validateFormats: false,
    code: { regExp: linear },
  }).compile(schema)
}
