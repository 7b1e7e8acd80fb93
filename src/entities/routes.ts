import { Elysia, t } from 'elysia'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import * as entities from './entities'
import * as pages from './list'
import {
  asOfParameter,
  blueprintParams,
  filterParameters,
  jsonContent,
  shapeParameters,
  toParameter,
  toRequiredParameter,
} from './parameters'
import { EntitiesDeleted, Entity, EntityDeleted, EntityInput, QueryPlan } from './shapes'

const searchParameters = [
  ['$q', 'string', 'words that the entity must contain'],
  ['$qProps', 'string', 'the properties to search, comma-separated'],
] as const
const pageParameters = [
  ['$after', 'string', 'the cursor of the `Link` to the next page'],
  asOfParameter,
  ['$explain', 'boolean', 'true: returns the query plan instead of the entities; admins only'],
] as const
const foundResponses = { 200: jsonContent(Entity, 'The entity') }
const changedResponses = { ...foundResponses, 409: jsonContent(ProblemShape, ''), 412: jsonContent(ProblemShape, '') }
const inputBody = jsonContent(EntityInput, 'The properties')
const ESTIMATED_HEADER = {
  description: '`true` when X-Total-Count is an estimate, which only `$count=estimate` allows',
  schema: { type: 'boolean' as const },
}
const entityParams = t.Object({ key: t.String(), identifier: t.String() })

export const entityRoutes = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(guard('entities'))
  .get('/', ({ ctx, params, request }) => pages.list(ctx, params.key, request), {
    anyone: true,
    detail: {
      operationId: 'listEntities',
      summary: 'List entities',
      parameters: [...filterParameters, ...searchParameters, ...pageParameters, ...shapeParameters].map(toParameter),
      description:
        'Filters: `field=value`, `field[$gt]=value` with $lt, $gt, $lte, $gte, $ne, $in, $nin, $exists, $like (`%`, `_`). The header `Link` leads to the next page.',
      responses: {
        200: {
          ...jsonContent(t.Union([t.Array(Entity), QueryPlan]), 'The entities, or with `$explain` the query plan'),
          headers: { 'X-Total-Count-Estimated': ESTIMATED_HEADER },
        },
      },
    },
  })
  .get('/:identifier', ({ ctx, params, request }) => entities.get(ctx, params.key, params.identifier, request), {
    anyone: true,
    detail: {
      operationId: 'getEntity',
      summary: 'Get an entity',
      parameters: [asOfParameter, ...shapeParameters].map(toParameter),
      responses: foundResponses,
    },
  })
  .post('/', ({ ctx, params, body, request }) => entities.create(ctx, params.key, body, request), {
    anyone: true,
    params: blueprintParams,
    detail: {
      operationId: 'createEntity',
      summary: 'Create an entity',
      requestBody: inputBody,
      responses: { 201: jsonContent(Entity, 'The new entity') },
    },
  })
  .put(
    '/:identifier',
    ({ ctx, params, body, request }) => entities.update(ctx, params.key, params.identifier, body, request),
    {
      anyone: true,
      params: entityParams,
      detail: {
        operationId: 'updateEntity',
        summary: 'Update an entity',
        requestBody: inputBody,
        responses: changedResponses,
      },
    },
  )
  .patch(
    '/:identifier',
    ({ ctx, params, body, request }) => entities.update(ctx, params.key, params.identifier, body, request),
    {
      anyone: true,
      params: entityParams,
      detail: {
        operationId: 'patchEntity',
        summary: 'Update an entity',
        requestBody: inputBody,
        responses: changedResponses,
      },
    },
  )
  .delete('/all', ({ ctx, params, request }) => entities.removeMatching(ctx, params.key, request), {
    anyone: true,
    params: blueprintParams,
    response: { 200: EntitiesDeleted, 409: ProblemShape },
    detail: {
      operationId: 'deleteMatchingEntities',
      parameters: [
        toRequiredParameter(['confirm', 'string', 'the key of the blueprint']),
        ...searchParameters.map(toParameter),
      ],
      summary: 'Delete all entities that match a filter',
      description: 'Takes the filters of `listEntities`. `confirm` must repeat the key of the blueprint.',
    },
  })
  .delete('/:identifier', ({ ctx, params, request }) => entities.remove(ctx, params.key, params.identifier, request), {
    anyone: true,
    params: entityParams,
    response: { 200: EntityDeleted, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
    detail: {
      operationId: 'deleteEntity',
      summary: 'Delete an entity',
      parameters: [toParameter(['purge', 'boolean', 'true: also removes its history; admins only'])],
    },
  })
