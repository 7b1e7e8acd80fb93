import { type Flaw, invalid } from '../core/problem'
import { suggestionOf } from '../core/unknown-keys'
import { boundOf } from './fields/type'
import { types } from './fields/types'
import { formula } from './formulas/formula'
import { type ModelField, ready } from './model'
import type { Definition, Field } from './shapes'

/** Names that the flat shape of an entity uses already, and one that JavaScript does. */
const RESERVED = [
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
const INHERITED = Object.getOwnPropertyNames(Object.prototype)

/** Whether no field, and nothing else beside them, can be called so. */
export const isReserved = (key: string) => RESERVED.includes(key) || INHERITED.includes(key)

const SCHEMA = 20_000 // characters of JSON
const SCHEMAS = 10

/** Refuses (400) a definition that makes no sense, with all that is wrong with it. */
export async function refuseSenseless({ fields, permissions = [], limitations = [], computed = {} }: Definition) {
  const flaws: Flaw[] = []
  const keys = new Set<string>()
  if (fields.filter(({ schema }) => schema).length > SCHEMAS)
    invalid({ path: '/fields', message: `At most ${SCHEMAS} fields have a schema.` })
  for (const [index, field] of fields.entries()) {
    const path = `/fields/${index}`
    const twice = keys.has(field.key)
    keys.add(field.key)
    if (twice) flaws.push({ path: `${path}/key`, message: `There are two fields "${field.key}".` })
    if (isReserved(field.key))
      flaws.push({ path: `${path}/key`, message: `"${field.key}" is a name of the system's. Choose another.` })
    flaws.push(...(await flawsOf(field)).map((flaw) => ({ ...flaw, path: path + flaw.path })))
  }
  for (const [index, { guest, roleBased, workspaceRoleBased }] of permissions.entries())
    if (!guest && !roleBased?.length && !workspaceRoleBased?.length)
      flaws.push({
        path: `/permissions/${index}`,
        message: 'Say whom this rule is for: guest, roleBased (such as ["user"]) or workspaceRoleBased.',
      })
  for (const [index, { properties = [] }] of limitations.entries())
    for (const property of properties) {
      const field = fields.find(({ key }) => key === property)
      const refuse = (message: string) => flaws.push({ path: `/limitations/${index}/properties`, message })
      if (!field) refuse(`There is no field "${property}".${suggestionOf(property, [...keys])}`)
      else if (field.multi || field.type === 'object') refuse(`"${property}" has not one value that could be equal.`)
    }
  for (const [key, text] of Object.entries(computed)) {
    const path = `/computed/${key}`
    const field = fields.find((field) => field.key === key)
    if (!field) flaws.push({ path, message: `There is no field "${key}".${suggestionOf(key, [...keys])}` })
    else if (field.default !== undefined) flaws.push({ path, message: `"${key}" is computed, so it has no default.` })
    await formula(text).catch(({ message }) =>
      flaws.push({ path, message: `The formula of "${key}" cannot be used: ${message}.` }),
    )
  }
  if (flaws.length) invalid(...flaws.slice(0, 100))
}

async function flawsOf(field: Field): Promise<Flaw[]> {
  const { type, multi } = field
  const kind = types[type]
  const flaws: Flaw[] = []
  const refuse = (path: string, message: string) => flaws.push({ path, message })

  if (field.pattern !== undefined && !(kind.bounds === 'length')) refuse('/pattern', `A ${type} has no pattern.`)
  if (field.schema && type !== 'object') refuse('/schema', 'Only an object has a schema.')
  if (field.schema && JSON.stringify(field.schema).length > SCHEMA)
    refuse('/schema', `A schema has at most ${SCHEMA} characters.`)
  if (field.target && type !== 'relation') refuse('/target', 'Only a relation has a target.')
  if (type === 'relation' && !field.target) refuse('/target', 'Name the blueprint that the relation points to.')
  if (field.onDelete && type !== 'relation') refuse('/onDelete', 'Only a relation has onDelete.')
  if (field.onDelete === 'nullify' && field.required && !multi)
    refuse('/onDelete', 'A required relation cannot be cleared.')
  if (field.unique && field.indexed === false) refuse('/unique', 'Only an indexed field can be unique.')
  if (field.unique && (multi || type === 'object')) refuse('/unique', 'Lists and objects cannot be unique.')

  for (const bound of ['min', 'max'] as const) {
    const value = field[bound]
    if (value === undefined) continue
    const byLength = multi || kind.bounds === 'length'
    if (!byLength && kind.bounds !== 'value') refuse(`/${bound}`, `A ${type} has no ${bound}.`)
    else if (byLength && !(Number.isSafeInteger(value) && Number(value) >= 0))
      refuse(`/${bound}`, 'Give a whole number, for it bounds a length.')
    else if (!byLength && kind.check(boundOf(kind, value))) refuse(`/${bound}`, `It ${kind.check(value)}.`)
  }
  const { min, max } = field
  if (!flaws.length && min !== undefined && max !== undefined) {
    const [least = 0, most = 0] =
      multi || kind.bounds === 'length' ? [min, max] : [min, max].map((one) => kind.key!(boundOf(kind, one)))
    if (least > most) refuse('/min', 'The least value is above the greatest.')
  }
  for (const [index, choice] of (field.enum ?? []).entries()) {
    const misfit = kind.check(choice)
    if (misfit) refuse(`/enum/${index}`, `It ${misfit}.`)
  }
  if (flaws.length) return flaws

  let model: ModelField
  try {
    model = await ready(field, 0)
  } catch (error) {
    const message = error instanceof Error ? error.message.slice(0, 300) : ''
    return [
      {
        path: field.pattern === undefined ? '/schema' : '/pattern',
        message: `This ${field.pattern === undefined ? 'schema' : 'pattern'} cannot be used: ${message}`,
      },
    ]
  }
  if (field.default === undefined || field.default === null) return flaws
  return model.flaws(field.default).map(({ path, message }) => ({ path: `/default${path}`, message: `It ${message}.` }))
}
