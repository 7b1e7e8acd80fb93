import { badRequest, type FieldError } from '../core/problem'
import { suggestName } from '../core/unknown-keys'
import { fieldTypes } from './fields'
import { toBoundValue } from './fields/field-type'
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

const MAX_SCHEMA_CHARACTERS = 20_000 // characters of JSON
const MAX_FIELDS_WITH_SCHEMA = 10

/** @throws 400 with at most 100 errors when a definition is invalid */
export async function validateDefinition({ fields, permissions = [], limitations = [], computed = {} }: Definition) {
  const errors: FieldError[] = []
  const keys = new Set<string>()
  if (fields.filter(({ schema }) => schema).length > MAX_FIELDS_WITH_SCHEMA)
    badRequest({ path: '/fields', message: `At most ${MAX_FIELDS_WITH_SCHEMA} fields can have a schema.` })
  for (const [index, field] of fields.entries()) {
    const path = `/fields/${index}`
    const isDuplicate = keys.has(field.key)
    keys.add(field.key)
    if (isDuplicate) errors.push({ path: `${path}/key`, message: `The field "${field.key}" is defined twice.` })
    if (isReserved(field.key))
      errors.push({ path: `${path}/key`, message: `"${field.key}" is a reserved name. Choose another one.` })
    errors.push(...(await validateField(field)).map((error) => ({ ...error, path: path + error.path })))
  }
  for (const [index, { guest, roleBased, workspaceRoleBased }] of permissions.entries())
    if (!guest && !roleBased?.length && !workspaceRoleBased?.length)
      errors.push({
        path: `/permissions/${index}`,
        message: 'A rule needs guest, roleBased (such as ["user"]) or workspaceRoleBased.',
      })
  for (const [index, { properties = [] }] of limitations.entries())
    for (const property of properties) {
      const field = fields.find(({ key }) => key === property)
      const addError = (message: string) => errors.push({ path: `/limitations/${index}/properties`, message })
      if (!field) addError(`There is no field "${property}".${suggestName(property, [...keys])}`)
      else if (field.multi || !fieldTypes[field.type].toIndexKey)
        addError(`"${property}" is a list or an object. Only fields with a single value can be used here.`)
    }
  for (const [key, text] of Object.entries(computed)) {
    const path = `/computed/${key}`
    const field = fields.find((field) => field.key === key)
    if (!field) errors.push({ path, message: `There is no field "${key}".${suggestName(key, [...keys])}` })
    else if (field.default !== undefined)
      errors.push({ path, message: `"${key}" is computed and cannot have a default.` })
    await compileFormula(text).catch(({ message }) =>
      errors.push({ path, message: `The formula of "${key}" cannot be used: ${message}.` }),
    )
  }
  if (errors.length) badRequest(...errors.slice(0, 100))
}

async function validateField(field: Field): Promise<FieldError[]> {
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
