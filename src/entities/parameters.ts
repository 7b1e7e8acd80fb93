import { t } from 'elysia'
import { LIST_FORMS } from '../core/query-lists'
import { CountOption } from './shapes'

/** The parameter of lists that asks for the number of matching entities. */
export const countParameter = [
  '$count',
  CountOption,
  'adds the X-Total-Count header; with `estimate`, large counts may be estimates, marked by X-Total-Count-Estimated',
] as const
export const filterParameters = [
  ['$limit', 'integer', 'page size; at most 1000', { minimum: 0, default: 100 }],
  ['$skip', 'integer', 'number of entities to skip', { minimum: 0, default: 0 }],
  ['$page', 'integer', 'page number, starting at 1; $limit is the page size', { minimum: 0, default: 1 }],
  ['$sort', 'string', `fields to sort by, ${LIST_FORMS}; prefix a field with "-" for descending order`],
  ['$select', 'string', `properties to return, ${LIST_FORMS}`],
  countParameter,
  ['$timezone', 'string', 'IANA time zone for filter dates without a time, such as Europe/Lisbon; defaults to UTC'],
] as const
/** The parameter that asks for earlier states, of blueprints with a history. */
export const asOfParameter = [
  '$asOf',
  'string',
  'ISO 8601 time: returns the state at that time. Requires a blueprint with history; cannot be combined with `$q`, `$populate`, `$outerPopulate` or `$count`',
] as const
export const flatParameter = ['$flat', 'boolean', 'false: properties only under "metadata" (deprecated)'] as const
export const shapeParameters = [
  flatParameter,
  [
    '$populate',
    'string',
    `embeds related entities: "true", or relations (${LIST_FORMS}), nested with dots (\`author.country\`)`,
  ],
  [
    '$outerPopulate',
    'string',
    '`name:blueprint:scope`, several like `$select`: embeds as `name` the newest 100 entities of the blueprint that refer to this one, within the scope user, workspace or tenant',
  ],
] as const

/** A query parameter for OpenAPI: its type or its shape. `more` is added to the schema of a type. */
type ParameterSpec = readonly [name: string, type: string | object, description: string, more?: object]
export const toParameter = ([name, type, description, more]: ParameterSpec) => ({
  name,
  in: 'query' as const,
  required: false,
  description,
  schema: typeof type === 'string' ? { type: type as 'string', ...more } : type,
})

export const toRequiredParameter = (spec: ParameterSpec) => ({ ...toParameter(spec), required: true })

export const jsonContent = (schema: object, description: string) => ({
  description,
  content: { 'application/json': { schema } },
})
export const blueprintParams = t.Object({ key: t.String() })
