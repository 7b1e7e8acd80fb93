import type { Ajv, ErrorObject, Format, ValidateFunction } from 'ajv'
import type { FieldError } from '../problem'
import { loadRe2 } from '../re2'
import {
  type Dialect,
  dialectOf,
  isSchemaObject,
  listUnknownKeywords,
  mapKeywords,
  type SchemaObject,
} from './keywords'
import { dereferenceSchema } from './references'

const MAX_CHECKED_CHARACTERS = 2_000
const MAX_PATTERN_PROGRAM_SIZE = 1_000 // instructions of the compiled pattern

/**
 * Returns a function that tells whether a text matches. RE2 takes time in proportion to the text for any pattern. The
 * factor can be large, so long texts never match.
 * @throws Error for an invalid or a costly pattern
 */
export const compileMatcher = (pattern: string) => {
  const compiled = loadRe2().compile(pattern)
  if (compiled.programSize() > MAX_PATTERN_PROGRAM_SIZE)
    throw new Error('it is too complex. Use fewer or smaller repetitions.')
  return (text: string) => text.length <= MAX_CHECKED_CHARACTERS && compiled.matcher(text).find()
}
// Ajv identifies patterns by their text.
const linearRegExp = Object.assign((pattern: string) => ({ test: compileMatcher(pattern), toString: () => pattern }), {
  code: 'linear',
})

const SCHEMAS_PER_AJV = 200 // creating an Ajv takes 10 ms, but each keeps parts of all compiled schemas
// The largest schema takes 150 ms; between two of them other work gets a turn.
let compileQueue = Promise.resolve<unknown>(undefined)
const ajvByDialect = new Map<Dialect, { ajv: Promise<Ajv>; left: number }>()

function takeAjv(dialect: Dialect): Promise<Ajv> {
  let shared = ajvByDialect.get(dialect)
  if (!shared?.left) {
    shared = { ajv: createAjv(dialect), left: SCHEMAS_PER_AJV }
    ajvByDialect.set(dialect, shared)
  }
  shared.left--
  return shared.ajv
}

/**
 * Compiles a schema in its dialect. Ajv is loaded with the first one. The compiled function is released with its caller.
 * @throws Error when it cannot be used
 */
export async function compileSchema(schema: SchemaObject): Promise<ValidateFunction> {
  const dereferenced = dereferenceSchema(schema)
  compileQueue = compileQueue.then(() => new Promise(setImmediate))
  await compileQueue
  try {
    return await compileIn(dialectOf(schema) ?? '2020-12', dereferenced)
  } catch (error) {
    // Schemas without $schema were draft-07 before they were 2020-12, and must not make their blueprint unusable.
    return compileIn('draft-07', dereferenced).catch(() => Promise.reject(error))
  }
}

async function compileIn(dialect: Dialect, schema: SchemaObject): Promise<ValidateFunction> {
  const ajv = await takeAjv(dialect)
  try {
    return ajv.compile(schema)
  } finally {
    ajv.removeSchema(schema)
  }
}

/** Returns the errors of a schema, each with a JSON pointer into it: unknown keywords, and values that they cannot have. */
export async function listSchemaErrors(schema: SchemaObject): Promise<FieldError[]> {
  const dialect = dialectOf(schema)
  if (!dialect) return [{ path: '/$schema', message: UNKNOWN_DIALECT }]
  const unknown = listUnknownKeywords(schema, dialect)
  if (unknown.length) return unknown
  const ajv = await takeAjv(dialect)
  const { $schema: _, ...parts } = schema
  if (ajv.validateSchema(parts)) return []
  const [{ instancePath, keyword, params, message } = {} as Partial<ErrorObject>] = ajv.errors ?? []
  const violation = keyword === 'enum' ? `must be one of ${params?.allowedValues.join(', ')}` : message
  return [{ path: instancePath ?? '', message: `It ${violation} in JSON Schema ${dialect}.` }]
}

const UNKNOWN_DIALECT =
  'Name the dialect by "https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema" or "http://json-schema.org/draft-07/schema#".'

/** Returns the formats in a schema that are not checked, with JSON pointers. */
export async function listUncheckedFormats(schema: SchemaObject): Promise<{ path: string; format: string }[]> {
  const { fullFormats } = await import('ajv-formats/dist/formats')
  const unchecked: { path: string; format: string }[] = []
  const visit = (part: SchemaObject, path: string) => {
    const { format } = part
    if (typeof format === 'string' && !Object.hasOwn(fullFormats, format))
      unchecked.push({ path: `${path}/format`, format })
    mapKeywords(part, visit, undefined, path)
  }
  visit(schema, '')
  return unchecked
}

async function createAjv(dialect: Dialect): Promise<Ajv> {
  const AjvClass = await LOADERS[dialect]()
  const ajv: Ajv = new AjvClass({
    ...{ strict: false, logger: false, ownProperties: true },
    code: { regExp: linearRegExp },
  })
  const { fullFormats } = await import('ajv-formats/dist/formats')
  for (const [name, format] of Object.entries(fullFormats)) ajv.addFormat(name, toBoundedFormat(format))
  // Ajv's own keyword compares all pairs.
  ajv.removeKeyword('uniqueItems')
  const validate = (wanted: boolean, list: unknown[]) => !wanted || new Set(list.map(toComparable)).size === list.length
  return ajv.addKeyword({ keyword: 'uniqueItems', type: 'array', schemaType: 'boolean', validate })
}

const LOADERS = {
  'draft-07': async () => (await import('ajv')).Ajv,
  '2019-09': async () => (await import('ajv/dist/2019')).Ajv2019,
  '2020-12': async () => (await import('ajv/dist/2020')).Ajv2020,
}

/** The expressions of some formats take time in proportion to the square of the text. */
function toBoundedFormat(format: Format): Format {
  const validate = typeof format === 'object' && 'validate' in format ? format.validate : format
  const type = typeof format === 'object' && 'type' in format ? format.type : undefined
  if (type === 'number' || typeof validate === 'boolean') return format
  const test = validate instanceof RegExp ? (text: string) => validate.test(text) : validate
  return (text: string) =>
    text.length <= MAX_CHECKED_CHARACTERS &&
    (typeof test === 'function' ? (test as (text: string) => boolean)(text) : new RegExp(test as string).test(text))
}

/** Returns a text that is the same for equal values, whatever the order of their properties. */
const toComparable = (value: unknown) =>
  JSON.stringify(value, (_, part) =>
    isSchemaObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  )
