import { t } from 'elysia'
import { LIST_FORMS } from '../core/query-lists'
import { CountOption } from './shapes'

/** The parameter of lists that asks for the number of matching entities. */
export const countParameter = [
  '$count',
  CountOption,
  'adds the header X-Total-Count; `estimate`: a large number may be an estimate, which X-Total-Count-Estimated tells',
] as const
export const filterParameters = [
  ['$limit', 'integer', 'page size; at most 1000', { minimum: 0, default: 100 }],
  ['$skip', 'integer', 'number of entities to skip', { minimum: 0, default: 0 }],
  ['$page', 'integer', 'the page of $limit entities, from 1', { minimum: 0, default: 1 }],
  ['$sort', 'string', `fields to sort by, ${LIST_FORMS}; "-" before one for descending`],
  ['$select', 'string', `the properties to return, ${LIST_FORMS}`],
  countParameter,
  ['$timezone', 'string', 'IANA time zone for dates without a time in filters, such as Europe/Lisbon; default: UTC'],
] as const
/** The parameter that asks for earlier states, of blueprints with a history. */
export const asOfParameter = [
  '$asOf',
  'string',
  'a time in ISO 8601: the state as of then, of blueprints with a history; not with `$q`, `$populate`, `$outerPopulate` or `$count`',
] as const
export const flatParameter = ['$flat', 'boolean', 'false: properties only under "metadata" (deprecated)'] as const
export const shapeParameters = [
  flatParameter,
  [
    '$populate',
    'string',
    `"true", or relations (${LIST_FORMS}), nested with dots (\`author.country\`): embeds the related entities`,
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
