type Schema = Record<string, unknown>

const SAMPLES = {
  string: 'Example',
  text: 'An example of a longer text.',
  integer: 1,
  number: 1.5,
  decimal: '19.90',
  boolean: true,
  date: '2030-01-31',
  time: '12:30',
  datetime: '2030-01-31T12:30:00Z',
  object: {},
  file: 'https://example.com/file.pdf',
  email: 'ada@example.com',
  url: 'https://example.com',
  relation: 'example',
}

/** What samples heed of a field. The admin page imports this file, so it has its own type. */
type SampledField = {
  key: string
  type: keyof typeof SAMPLES
  required?: boolean
  default?: unknown
  enum?: unknown[]
  min?: number | string
  max?: number | string
  pattern?: string
  multi?: boolean
  unique?: boolean
  schema?: Schema
  target?: string
}

/** Returns a value that a field takes: a choice, its default, or an example; undefined where none is sure to fit. */
export function toSample(field: SampledField): unknown {
  const { type, multi, min, enum: choices, default: standard, unique } = field
  if (standard !== undefined && standard !== null && !unique) return standard
  const single = choices ? choices[0] : sampleValue(field)
  if (!multi || single === undefined) return single
  return Array.from({ length: Math.max(1, Number(min ?? 1)) }, () => single)

  function sampleValue({ pattern, schema, target, max }: SampledField): unknown {
    if (pattern !== undefined) return
    if (type === 'relation') return `${target}-1`
    if (schema) return toSampleOfSchema(schema)
    const value = SAMPLES[type]
    if (multi || (min === undefined && max === undefined)) return value
    return isLengthBound(type) ? fitLength(`${value}`, field) : fitBounds(value, field)
  }
}

const isLengthBound = (type: SampledField['type']) => ['string', 'text', 'file', 'email', 'url'].includes(type)

/** Only texts may be cut. */
function fitLength(text: string, { type, min, max }: SampledField): string | undefined {
  const fitting = text.padEnd(Number(min ?? 0), 'x').slice(0, Number(max ?? Number.POSITIVE_INFINITY))
  return fitting.length >= text.length || type === 'string' || type === 'text' ? fitting : undefined
}

function fitBounds(value: unknown, { type, min, max }: SampledField): unknown {
  const toValue = (bound: unknown) => (typeof value === 'number' ? Number(bound) : `${bound}`)
  const order = (one: unknown) => (typeof value === 'number' || type === 'decimal' ? Number(one) : `${one}`)
  if (min !== undefined && order(value) < order(min)) return toValue(min)
  if (max !== undefined && order(value) > order(max)) return toValue(max)
  return value
}

/** Words of JSON Schema that say nothing about whether a value fits, or that samples heed. */
const KNOWN_WORDS = [
  ...['$schema', '$id', '$comment', 'title', 'description', 'examples', 'default', 'deprecated', 'readOnly'],
  ...['type', 'enum', 'const', 'properties', 'required', 'additionalProperties', 'items', 'minItems', 'maxItems'],
  ...['minLength', 'maxLength', 'minimum', 'maximum', 'format'],
]
const SAMPLES_OF_FORMATS: Record<string, string> = {
  ...{ date: '2030-01-31', 'date-time': '2030-01-31T12:30:00Z', email: 'ada@example.com' },
  ...{ uri: 'https://example.com', 'uri-reference': '/example', uuid: '019a7c7e-5d4b-7f3e-9a53-2f6d1c0b8e11' },
}

/** Returns a value that fits a JSON Schema, or undefined for one that says more than samples heed. */
export function toSampleOfSchema(schema: unknown): unknown {
  if (schema === true) return 'Example'
  if (typeof schema !== 'object' || schema === null) return
  const { type, const: only, enum: choices, required = [], properties = {}, ...more } = schema as Schema
  if (only !== undefined) return only
  if (Array.isArray(choices)) return choices[0]
  if (Object.keys(schema).some((word) => !KNOWN_WORDS.includes(word))) return
  const kind = Array.isArray(type) ? type[0] : (type ?? 'object')
  if (kind === 'object') return toSampleObject(required as string[], properties as Schema)
  if (kind === 'array') return toSampleList(more)
  if (kind === 'string') return toSampleText(more)
  if (kind === 'boolean') return true
  if (kind === 'null') return null
  if (kind !== 'integer' && kind !== 'number') return
  return fitBounds(1, { key: '', type: 'integer', min: more.minimum as number, max: more.maximum as number })
}

function toSampleObject(required: string[], properties: Schema) {
  const samples = required.map((key) => [key, toSampleOfSchema(properties[key] ?? true)] as const)
  return samples.some(([, sample]) => sample === undefined) ? undefined : Object.fromEntries(samples)
}

function toSampleList({ items = true, minItems = 0 }: Schema) {
  const sample = toSampleOfSchema(items)
  return sample === undefined && Number(minItems) > 0
    ? undefined
    : Array.from({ length: Number(minItems) }, () => sample)
}

function toSampleText({ format, minLength: min, maxLength: max }: Schema) {
  if (typeof format === 'string') return SAMPLES_OF_FORMATS[format]
  return fitLength('Example', { key: '', type: 'string', min: min as number, max: max as number })
}

const MAX_OPTIONAL_FIELDS = 4

/**
 * Returns the properties of a new entity, as an example: those that are required, and some others. `toValue` may know
 * better values. Returns undefined where nothing is sure to fit a field that is required.
 */
export function toSampleEntity<F extends SampledField>(
  fields: readonly F[],
  toValue: (field: F) => unknown = toSample,
): Record<string, unknown> | undefined {
  const required = fields.filter(({ required: isRequired }) => isRequired)
  const others = fields.filter((field) => !field.required && field.type !== 'relation' && toValue(field) !== undefined)
  const shown = [...required, ...others.slice(0, Math.max(0, MAX_OPTIONAL_FIELDS - required.length))]
  const samples = fields.filter((field) => shown.includes(field)).map((field) => [field.key, toValue(field)] as const)
  return samples.some(([, sample]) => sample === undefined) ? undefined : Object.fromEntries(samples)
}
