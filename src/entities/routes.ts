import { Elysia, t } from 'elysia'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import * as entities from './entities'
import * as pages from './pages'

export const Entity = t.Object(
  {
    _id: t.String(),
    identifier: t.String(),
    created: t.String(),
    updated: t.String(),
    user: t.Nullable(t.String()),
    workspace: t.Nullable(t.String()),
    metadata: t.Record(t.String(), t.Unknown()),
  },
  { additionalProperties: true, description: 'In the flat shape each property stands beside metadata, too.' },
)

export const filters = [
  ['$limit', 'integer', 'how many, 100 unless told, at most 1000'],
  ['$skip', 'integer', 'how many to pass over'],
  ['$page', 'integer', 'the page of $limit entities, from 1'],
  ['$sort', 'string', 'fields to sort by, comma-separated; "-" before one for descending'],
  ['$select', 'string', 'the properties to show, comma-separated'],
  ['$count', 'boolean', 'adds the header X-Total-Count'],
] as const
const ofPages = [
  ['$after', 'string', 'where the page begins: the cursor of the link to the next page'],
  ['$explain', 'boolean', 'true: how the query is answered, instead of the entities; for privileged callers'],
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

export const parameter = ([name, type, description]: readonly [string, string, string]) => ({
  name,
  in: 'query' as const,
  required: false,
  description,
  schema: { type: type as 'string' },
})

/** Entities answer with a Response of their own, so their shapes are told to the documentation only. */
export const json = (schema: object, description: string) => ({
  description,
  content: { 'application/json': { schema } },
})
const one = { 200: json(Entity, 'the entity'), 404: json(ProblemShape, 'there is none') }
const params = t.Object({ key: t.String(), identifier: t.String() })
export const ofBlueprint = t.Object({ key: t.String() })

export const entityRoutes = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(guard('entities'))
  .get('/', ({ ctx, params, request }) => pages.list(ctx, params.key, request), {
    anyone: true,
    detail: {
      operationId: 'listEntities',
      summary: 'List entities',
      parameters: [...filters, ...ofPages, ...forms].map(parameter),
      description:
        'Filters: `field=value`, `field[$gt]=value` with $lt, $gt, $lte, $gte, $ne, $in, $nin, $exists, $like (`%`, `_`). The header `Link` leads to the next page.',
      responses: {
        200: json(t.Array(Entity), 'the entities; with $explain how they are found'),
        403: json(ProblemShape, 'no rule, or $explain'),
      },
    },
  })
  .get('/:identifier', ({ ctx, params, request }) => entities.get(ctx, params.key, params.identifier, request), {
    anyone: true,
    detail: { operationId: 'getEntity', summary: 'Get an entity', parameters: forms.map(parameter), responses: one },
  })
  .post('/', ({ ctx, params, body, request }) => entities.create(ctx, params.key, body, request), {
    anyone: true,
    params: ofBlueprint,
    detail: {
      operationId: 'createEntity',
      summary: 'Create an entity',
      requestBody: json(Entity, ''),
      responses: { 201: json(Entity, 'the new entity') },
    },
  })
  .put(
    '/:identifier',
    ({ ctx, params, body, request }) => entities.change(ctx, params.key, params.identifier, body, request),
    {
      anyone: true,
      params,
      detail: {
        operationId: 'updateEntity',
        summary: 'Update an entity',
        requestBody: json(Entity, ''),
        responses: one,
      },
    },
  )
  .patch(
    '/:identifier',
    ({ ctx, params, body, request }) => entities.change(ctx, params.key, params.identifier, body, request),
    {
      anyone: true,
      params,
      detail: {
        operationId: 'patchEntity',
        summary: 'Update an entity',
        requestBody: json(Entity, ''),
        responses: one,
      },
    },
  )
  .delete('/all', ({ ctx, params, request }) => entities.removeMatching(ctx, params.key, request), {
    anyone: true,
    params: ofBlueprint,
    response: { 200: t.Object({ success: t.Literal(true), deletedCount: t.Number() }), 409: ProblemShape },
    detail: {
      operationId: 'deleteMatchingEntities',
      summary: 'Delete all entities that match a filter',
      description: 'Takes the filters of `listEntities`. `confirm` repeats the key of the blueprint.',
    },
  })
  .delete('/:identifier', ({ ctx, params, request }) => entities.remove(ctx, params.key, params.identifier, request), {
    anyone: true,
    params,
    response: {
      200: t.Object({ success: t.Literal(true), identifier: t.String() }),
      404: ProblemShape,
      409: ProblemShape,
    },
    detail: { operationId: 'deleteEntity', summary: 'Delete an entity' },
  })
