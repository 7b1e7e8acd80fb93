import { dereferenceSchema } from '../../core/json-schema/references'
import { fieldTypes } from '../fields'
import { describeFileField } from '../file-fields'
import type { Definition, Field } from '../shapes'
import type { TypeIdentifiers } from './identifiers'
import { typeOfChoices, typeOfSchema } from './json-schema'
import { printComment, printLiteral, printObjectType, printProperty } from './printer'

export type DescribedBlueprint = { key: string; name: string; description: string; definition: Definition }

/** Returns the TypeScript types of a blueprint: its entities, drafts and changes, and its entry in `Blueprints`. */
export function declareBlueprint(
  { key, name, description, definition }: DescribedBlueprint,
  names: TypeIdentifiers,
): string {
  const { fields, computed = {} } = definition
  const writableFields = fields.filter((field) => !Object.hasOwn(computed, field.key))
  const { entity, properties, draft, change } = names
  return [
    printComment(name, description),
    `export interface ${entity} extends Entity<${properties}>, ${properties} {}\n\n`,
    declareInterface(
      properties,
      fields.map((field) => fieldComment(field, Object.hasOwn(computed, field.key)) + entityMember(field)),
    ),
    declareInterface(draft, [
      'identifier?: string | null',
      ...OWNER_MEMBERS,
      ...writableFields.map((field) => fieldComment(field) + draftMember(field)),
    ]),
    declareInterface(change, [
      ...OWNER_MEMBERS,
      ...writableFields.map((field) => fieldComment(field) + changeMember(field)),
    ]),
    `export interface Blueprints ${printObjectType([`${printProperty(key)}: ${printObjectType(clientMembers(fields, names))}`])}\n`,
  ].join('')
}

const OWNER_MEMBERS = ['user', 'workspace'].map((key) => `${printComment('Set by admins only.')}${key}?: string | null`)

const declareInterface = (name: string, members: string[]) => `export interface ${name} ${printObjectType(members)}\n\n`

const fieldComment = (field: Field, isComputed = false) =>
  printComment(field.title, field.description, describeFileField(field), isComputed ? 'Computed.' : undefined)

/** A field with readRoles may be absent although it is required: not every caller may read it. */
const entityMember = (field: Field) =>
  `${field.key}${field.required && !field.readRoles?.length ? '' : '?'}: ${typeOfField(field)}`
const draftMember = (field: Field) =>
  `${field.key}${field.required && !hasDefault(field) ? '' : '?'}: ${typeOfField(field)}${field.required ? '' : ' | null'}`
const changeMember = (field: Field) => `${field.key}?: ${typeOfField(field)}${field.required ? '' : ' | null'}`

const hasDefault = ({ default: value }: Field) => value !== undefined && value !== null

const typeOfField = (field: Field) => (field.multi ? `(${typeOfSingleValue(field)})[]` : typeOfSingleValue(field))

function typeOfSingleValue({ type, enum: choices, schema }: Field): string {
  if (choices) return typeOfChoices(choices)
  return (schema && typeOfObject(schema)) ?? fieldTypes[type].typescript
}

/** Returns undefined for an invalid schema, which must not make the whole file unusable. */
function typeOfObject(schema: Record<string, unknown>): string | undefined {
  try {
    return typeOfSchema(dereferenceSchema(schema), ['object'])
  } catch {
    return undefined
  }
}

/** Returns the members of a blueprint's `Kind` in the client. */
function clientMembers(fields: Field[], { entity, properties, draft, change }: TypeIdentifiers): string[] {
  const isObject = ({ type }: Field) => !fieldTypes[type].toIndexKey
  const isFilterable = (field: Field) => (!field.multi && !isObject(field)) || field.indexed !== false || !!field.target
  const keysOf = (list: Field[]) => list.map(({ key }) => printLiteral(key)).join(' | ') || 'never'
  const filters = fields.filter(isFilterable).map((field) => {
    if (isObject(field)) return `[part: \`${field.key}.\${string}\`]: string | number | boolean`
    const { filterTypescript } = fieldTypes[field.type]
    return `${field.key}: ${typeOfSingleValue(field)}${filterTypescript ? ` | ${filterTypescript}` : ''}`
  })
  const relations = fields.flatMap(({ key, target }) => (target ? [`${key}: ${printLiteral(target)}`] : []))
  return [
    `entity: ${entity}`,
    `properties: ${properties}`,
    `draft: ${draft}`,
    `change: ${change}`,
    `relations: ${printObjectType(relations)}`,
    `filters: ${printObjectType(filters)}`,
    `sorted: ${keysOf(fields.filter((field) => !field.multi && !isObject(field)))}`,
    `searched: ${keysOf(fields.filter(({ type }) => fieldTypes[type].isSearchable))}`,
  ]
}
