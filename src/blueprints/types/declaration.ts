import { types } from '../fields/types'
import { unfolded } from '../model'
import type { Definition, Field } from '../shapes'
import type { Names } from './names'
import { choicesType, typeOf } from './schema'
import { braced, comment, literal, property } from './text'

export type Described = { key: string; name: string; description: string; definition: Definition }

/** The types of a blueprint: what is read of its entities, what makes and what changes one, and what can be asked. */
export function declarationOf({ key, name, description, definition }: Described, names: Names): string {
  const { fields, computed = {} } = definition
  const set = fields.filter((field) => !Object.hasOwn(computed, field.key))
  const { entity, properties, draft, change } = names
  return [
    comment(name, description),
    `export interface ${entity} extends Entity<${properties}>, ${properties} {}\n\n`,
    shape(
      properties,
      fields.map((field) => about(field, Object.hasOwn(computed, field.key)) + read(field)),
    ),
    shape(draft, ['identifier?: string | null', ...OWNERS, ...set.map((field) => about(field) + made(field))]),
    shape(change, [...OWNERS, ...set.map((field) => about(field) + changed(field))]),
    `export interface Blueprints ${braced([`${property(key)}: ${braced(kindOf(fields, names))}`])}\n`,
  ].join('')
}

const OWNERS = ['user', 'workspace'].map((key) => `${comment('Set by admins only.')}${key}?: string | null`)

const shape = (name: string, members: string[]) => `export interface ${name} ${braced(members)}\n\n`

const about = ({ title, description }: Field, isComputed = false) =>
  comment(title, description, isComputed ? 'Computed.' : undefined)

/** Who may not read a field doesn't see it, so it may be absent although it is required. */
const read = (field: Field) =>
  `${field.key}${field.required && !field.readRoles?.length ? '' : '?'}: ${typeOfField(field)}`
const made = (field: Field) =>
  `${field.key}${field.required && !hasDefault(field) ? '' : '?'}: ${typeOfField(field)}${field.required ? '' : ' | null'}`
const changed = (field: Field) => `${field.key}?: ${typeOfField(field)}${field.required ? '' : ' | null'}`

const hasDefault = ({ default: value }: Field) => value !== undefined && value !== null

const typeOfField = (field: Field) => (field.multi ? `(${oneOfField(field)})[]` : oneOfField(field))

function oneOfField({ type, enum: choices, schema }: Field): string {
  if (choices) return choicesType(choices)
  return (schema && objectOf(schema)) ?? types[type].typescript
}

/** One that was good when it was saved must not make the file unusable. */
function objectOf(schema: Record<string, unknown>): string | undefined {
  try {
    return typeOf(unfolded(schema), ['object'])
  } catch {
    return undefined
  }
}

/** What the client knows of a blueprint. */
function kindOf(fields: Field[], { entity, properties, draft, change }: Names): string[] {
  const isObject = ({ type }: Field) => !types[type].key
  const isFound = (field: Field) => (!field.multi && !isObject(field)) || field.indexed !== false || !!field.target
  const keys = (some: Field[]) => some.map(({ key }) => literal(key)).join(' | ') || 'never'
  const filters = fields.filter(isFound).map((field) => {
    if (isObject(field)) return `[part: \`${field.key}.\${string}\`]: string | number | boolean`
    // A decimal is text where it is told, but asked for as it is written.
    return `${field.key}: ${oneOfField(field)}${field.type === 'decimal' ? ' | number' : ''}`
  })
  const relations = fields.flatMap(({ key, target }) => (target ? [`${key}: ${literal(target)}`] : []))
  return [
    `entity: ${entity}`,
    `properties: ${properties}`,
    `draft: ${draft}`,
    `change: ${change}`,
    `relations: ${braced(relations)}`,
    `filters: ${braced(filters)}`,
    `sorted: ${keys(fields.filter((field) => !field.multi && !isObject(field)))}`,
    `searched: ${keys(fields.filter(({ type }) => types[type].searched))}`,
  ]
}
