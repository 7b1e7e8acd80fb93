import { yieldToEventLoop } from '../core/event-loop'
import { listSchemaErrors } from '../core/json-schema/validator'
import { badRequest, type FieldError } from '../core/problem'
import { suggestName } from '../core/unknown-keys'
import { fieldTypes } from './fields'
import { toBoundValue } from './fields/field-type'
import { isFilePath } from './file-fields'
import { compileFormula } from './formulas/formula'
import { compileField, type ModelField } from './model'
import type { Definition, Field } from './shapes'

/** Keys that the flat shape of an entity already uses, or that are reserved. */
const RESERVED_FIELD_KEYS = [
  '_id',
  'identifier',
  'created',
  'updated',
  'user',
  'workspace',
  'metadata',
  'blueprint',
  'tenant',
  'id',
]
const OBJECT_PROTOTYPE_KEYS = Object.getOwnPropertyNames(Object.prototype)

/** Returns whether a key is reserved, so that no field can have it. */
export const isReserved = (key: string) => RESERVED_FIELD_KEYS.includes(key) || OBJECT_PROTOTYPE_KEYS.includes(key)

const MAX_ERRORS = 100
const MAX_SCHEMA_CHARACTERS = 20_000 // characters of JSON
const MAX_FIELDS_WITH_SCHEMA = 10

/** Unicode classes, and ranges that end beyond ASCII: RE2 takes up to 2 ms for each where case is ignored. */
const COSTLY_CLASS = /\\[pP]|-(?:\\+x|[^\0-\x7f])/g
const MAX_COSTLY_CLASSES = 500

/**
 * Validates a definition. Schemas of `before` that come back unchanged are not judged again.
 * @throws 400 with the first 100 errors when a definition is invalid
 */
export async function validateDefinition(definition: Definition, before?: Definition) {
  assertCompilable(definition)
  const errors: FieldError[] = []
  const storedSchemas = before?.fields.flatMap(({ schema }) => (schema ? [schema] : [])) ?? []
  for await (const error of listErrors(definition, storedSchemas)) {
    errors.push(error)
    // The search for more would cost more than they are worth.
    if (errors.length === MAX_ERRORS) break
  }
  if (errors.length) badRequest(...errors)
}

/** @throws 400 when compiling all schemas and patterns would take too long */
function assertCompilable({ fields, computed = {} }: Definition) {
  if (fields.filter(({ schema }) => schema).length > MAX_FIELDS_WITH_SCHEMA)
    badRequest({ path: '/fields', message: `At most ${MAX_FIELDS_WITH_SCHEMA} fields can have a schema.` })
  const patterns = [
    ...fields.flatMap(({ pattern = '', schema }) => [pattern, schema ? JSON.stringify(schema) : '']),
    ...Object.values(computed),
  ]
  if (patterns.reduce((sum, text) => sum + (text.match(COSTLY_CLASS)?.length ?? 0), 0) > MAX_COSTLY_CLASSES)
    badRequest({
      path: '/fields',
      message: `All patterns together can have at most ${MAX_COSTLY_CLASSES} Unicode classes and ranges.`,
    })
}

async function* listErrors(
  { fields, permissions = [], limitations = [], computed = {} }: Definition,
  storedSchemas: object[],
): AsyncGenerator<FieldError, void> {
  const fieldByKey = new Map<string, Field>()
  for (const [index, field] of fields.entries()) {
    const path = `/fields/${index}`
    if (fieldByKey.has(field.key)) yield { path: `${path}/key`, message: `The field "${field.key}" is defined twice.` }
    else fieldByKey.set(field.key, field)
    if (isReserved(field.key))
      yield { path: `${path}/key`, message: `"${field.key}" is a reserved name. Choose another one.` }
    for (const error of await validateField(field, storedSchemas)) yield { ...error, path: path + error.path }
    if (field.pattern !== undefined) await yieldToEventLoop()
  }
  const unknownField = (key: string) => `There is no field "${key}".${suggestName(key, [...fieldByKey.keys()])}`
  for (const [index, { guest, roleBased, workspaceRoleBased }] of permissions.entries())
    if (!guest && !roleBased?.length && !workspaceRoleBased?.length)
      yield {
        path: `/permissions/${index}`,
        message: 'A rule needs guest, roleBased (such as ["user"]) or workspaceRoleBased.',
      }
  for (const [index, { properties = [] }] of limitations.entries())
    for (const property of properties) {
      const path = `/limitations/${index}/properties`
      const field = fieldByKey.get(property)
      if (!field) yield { path, message: unknownField(property) }
      else if (field.multi || !fieldTypes[field.type].toIndexKey)
        yield {
          path,
          message: `"${property}" is a list or an object. Only fields with a single value can be used here.`,
        }
    }
  for (const [key, text] of Object.entries(computed)) {
    const path = `/computed/${key}`
    const field = fieldByKey.get(key)
    if (!field) yield { path, message: unknownField(key) }
    else if (field.default !== undefined) yield { path, message: `"${key}" is computed and cannot have a default.` }
    const error = await compileFormula(text).then(
      () => undefined,
      ({ message }: Error) => message,
    )
    if (error !== undefined) yield { path, message: `The formula of "${key}" cannot be used: ${error}.` }
    await yieldToEventLoop()
  }
}

async function validateField(field: Field, storedSchemas: object[]): Promise<FieldError[]> {
  const { type, multi } = field
  const kind = fieldTypes[type]
  const errors: FieldError[] = []
  const addError = (path: string, message: string) => errors.push({ path, message })

  if (field.pattern !== undefined && !(kind.bounds === 'length'))
    addError('/pattern', `A field of the type ${type} cannot have a pattern.`)
  if (field.schema && type !== 'object') addError('/schema', 'Only a field of the type object can have a schema.')
  if (field.schema && JSON.stringify(field.schema).length > MAX_SCHEMA_CHARACTERS)
    addError('/schema', `A schema can have at most ${MAX_SCHEMA_CHARACTERS} characters.`)
  if (field.target && type !== 'relation') addError('/target', 'Only a relation can have a target.')
  if (type === 'relation' && !field.target) addError('/target', 'A relation needs a target, the key of a blueprint.')
  if (field.onDelete && type !== 'relation') addError('/onDelete', 'Only a relation can have onDelete.')
  if (field.onDelete === 'nullify' && field.required && !multi)
    addError('/onDelete', 'A required relation cannot be cleared.')
  if (field.accept && type !== 'file') addError('/accept', 'Only a field of the type file can have accept.')
  if (field.maxSize !== undefined && type !== 'file')
    addError('/maxSize', 'Only a field of the type file can have maxSize.')
  if (field.thumbs && type !== 'file') addError('/thumbs', 'Only a field of the type file can have thumbs.')
  else if (field.thumbs && field.indexed === false)
    addError('/thumbs', 'Only an indexed field can have thumbs, because its index tells which files it names.')
  if (type === 'file' && [field.default].flat().some(isFilePath))
    addError('/default', 'A default cannot be an uploaded file, because unreferenced uploads are deleted.')
  if (field.unique && field.indexed === false) addError('/unique', 'Only an indexed field can be unique.')
  if (field.unique && (multi || !kind.toIndexKey)) addError('/unique', 'Lists and objects cannot be unique.')

  for (const bound of ['min', 'max'] as const) {
    const value = field[bound]
    if (value === undefined) continue
    const byLength = multi || kind.bounds === 'length'
    if (!byLength && kind.bounds !== 'value') addError(`/${bound}`, `A field of the type ${type} cannot have ${bound}.`)
    else if (byLength && !(Number.isSafeInteger(value) && Number(value) >= 0))
      addError(`/${bound}`, 'It must be a whole number, because it limits a length.')
    else if (!byLength && kind.check(toBoundValue(kind, value))) addError(`/${bound}`, `It ${kind.check(value)}.`)
  }
  const { min, max } = field
  if (!errors.length && min !== undefined && max !== undefined) {
    const [minimum = 0, maximum = 0] =
      multi || kind.bounds === 'length'
        ? [min, max]
        : [min, max].map((bound) => kind.toIndexKey!(toBoundValue(kind, bound)))
    if (minimum > maximum) addError('/min', 'min must not be greater than max.')
  }
  for (const [index, choice] of (field.enum ?? []).entries()) {
    const violation = kind.check(choice)
    if (violation) addError(`/enum/${index}`, `It ${violation}.`)
  }
  if (errors.length) return errors

  const { schema } = field
  if (schema && !storedSchemas.some((stored) => Bun.deepEquals(stored, schema)))
    for (const { path, message } of await listSchemaErrors(schema)) addError(`/schema${path}`, message)
  if (errors.length) return errors

  let model: ModelField
  try {
    model = await compileField(field, 0)
  } catch (error) {
    const message = error instanceof Error ? error.message.slice(0, 300) : ''
    return [
      {
        path: field.pattern === undefined ? '/schema' : '/pattern',
        message: `This ${field.pattern === undefined ? 'schema' : 'pattern'} cannot be used: ${message}`,
      },
    ]
  }
  if (field.default === undefined || field.default === null) return errors
  return model
    .validate(field.default)
    .map(({ path, message }) => ({ path: `/default${path}`, message: `It ${message}.` }))
}
