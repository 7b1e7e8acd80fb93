import { Elysia, t } from 'elysia'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import * as entities from './entities'
import * as pages from './pages'
import { EntitiesDeleted, Entity, EntityDeleted, EntityInput, QueryPlan } from './shapes'

export const filters = [
  ['$limit', 'integer', 'how many; at most 1000 are answered', { minimum: 0, default: 100 }],
  ['$skip', 'integer', 'how many to skip', { minimum: 0, default: 0 }],
  ['$page', 'integer', 'the page of $limit entities, from 1', { minimum: 0, default: 1 }],
  ['$sort', 'string', 'fields to sort by, comma-separated; "-" before one for descending'],
  ['$select', 'string', 'the properties to show, comma-separated'],
  ['$count', 'boolean', 'adds the header X-Total-Count'],
] as const
const search = [
  ['$q', 'string', 'words that must be in the entity'],
  ['$qProps', 'string', 'the properties to search within, comma-separated'],
] as const
const ofPages = [
  ['$after', 'string', 'the cursor of the `Link` to the next page'],
  ['$explain', 'boolean', 'true: answers how the query is run, instead of the entities; for admins'],
] as const
export const form = ['$flat', 'boolean', 'false: properties only under "metadata" (deprecated)'] as const
export const forms = [
  form,
  [
    '$populate',
    'string',
    '"true", or relations, comma-separated, with dots to go on from them (`author.country`): shows what they lead to',
  ],
  [
    '$outerPopulate',
    'string',
    '`name:blueprint:scope`, comma-separated: shows as `name` the newest 100 entities of the blueprint that refer to this one, of the scope user, workspace or tenant',
  ],
] as const

type Told = readonly [name: string, type: string, description: string, more?: object]
export const parameter = ([name, type, description, more]: Told) => ({
  name,
  in: 'query' as const,
  required: false,
  description,
  schema: { type: type as 'string', ...more },
})

export const json = (schema: object, description: string) => ({
  description,
  content: { 'application/json': { schema } },
})
const found = { 200: json(Entity, 'The entity') }
const changed = { ...found, 409: json(ProblemShape, ''), 412: json(ProblemShape, '') }
const input = json(EntityInput, 'The properties')
const params = t.Object({ key: t.String(), identifier: t.String() })
export const ofBlueprint = t.Object({ key: t.String() })

export const entityRoutes = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(guard('entities'))
  .get('/', ({ ctx, params, request }) => pages.list(ctx, params.key, request), {
    anyone: true,
    detail: {
      operationId: 'listEntities',
      summary: 'List entities',
      parameters: [...filters, ...search, ...ofPages, ...forms].map(parameter),
      description:
        'Filters: `field=value`, `field[$gt]=value` with $lt, $gt, $lte, $gte, $ne, $in, $nin, $exists, $like (`%`, `_`). The header `Link` leads to the next page.',
      responses: {
        200: json(t.Union([t.Array(Entity), QueryPlan]), 'The entities; with `$explain` how the query is run'),
      },
    },
  })
  .get('/:identifier', ({ ctx, params, request }) => entities.get(ctx, params.key, params.identifier, request), {
    anyone: true,
    detail: { operationId: 'getEntity', summary: 'Get an entity', parameters: forms.map(parameter), responses: found },
  })
  .post('/', ({ ctx, params, body, request }) => entities.create(ctx, params.key, body, request), {
    anyone: true,
    params: ofBlueprint,
    detail: {
      operationId: 'createEntity',
      summary: 'Create an entity',
      requestBody: input,
      responses: { 201: json(Entity, 'The new entity') },
    },
  })
  .put(
    '/:identifier',
    ({ ctx, params, body, request }) => entities.change(ctx, params.key, params.identifier, body, request),
    {
      anyone: true,
      params,
      detail: { operationId: 'updateEntity', summary: 'Update an entity', requestBody: input, responses: changed },
    },
  )
  .patch(
    '/:identifier',
    ({ ctx, params, body, request }) => entities.change(ctx, params.key, params.identifier, body, request),
    {
      anyone: true,
      params,
      detail: { operationId: 'patchEntity', summary: 'Update an entity', requestBody: input, responses: changed },
    },
  )
  .delete('/all', ({ ctx, params, request }) => entities.removeMatching(ctx, params.key, request), {
    anyone: true,
    params: ofBlueprint,
    response: { 200: EntitiesDeleted, 409: ProblemShape },
    detail: {
      operationId: 'deleteMatchingEntities',
      parameters: [
        { ...parameter(['confirm', 'string', 'the key of the blueprint']), required: true },
        ...search.map(parameter),
      ],
      summary: 'Delete all entities that match a filter',
      description: 'Takes the filters of `listEntities`. `confirm` repeats the key of the blueprint.',
    },
  })
  .delete('/:identifier', ({ ctx, params, request }) => entities.remove(ctx, params.key, params.identifier, request), {
    anyone: true,
    params,
    response: { 200: EntityDeleted, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
    detail: { operationId: 'deleteEntity', summary: 'Delete an entity' },
  })
