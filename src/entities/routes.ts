import { Elysia, t } from 'elysia'
import type { PublicCtx } from '../accounts/context'
import { readDirectly } from '../accounts/direct-reads'
import { formGuard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { LIST_FORMS } from '../core/query-lists'
import * as entities from './entities'
import { writeFromBody } from './form'
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
  ['$q', 'string', 'words that entities must contain'],
  ['$qProps', 'string', `properties to search, ${LIST_FORMS}`],
] as const
const pageParameters = [
  ['$after', 'string', 'cursor from the `Link` to the next page'],
  asOfParameter,
  ['$explain', 'boolean', 'true: returns the query plan instead of the entities; admins only'],
] as const
const foundResponses = { 200: jsonContent(Entity, 'The entity') }
const changedResponses = { ...foundResponses, 409: jsonContent(ProblemShape, ''), 412: jsonContent(ProblemShape, '') }
const inputBody = {
  content: {
    ...jsonContent(EntityInput, '').content,
    'multipart/form-data': {
      schema: {
        type: 'object' as const,
        description:
          'One part per property: a file or a text. Send objects, numbers and booleans as JSON, and lists as one part per value. With the part `keep`, files are retained even if no entity refers to them.',
        additionalProperties: true,
      },
    },
  },
  description: 'The properties',
}
const ESTIMATED_HEADER = {
  description: '`true` if X-Total-Count is an estimate; only with `$count=estimate`',
  schema: { type: 'boolean' as const },
}
const create = (ctx: PublicCtx, key: string, body: unknown, request: Request) =>
  writeFromBody(ctx, key, 'create', { body, request }, (properties, uploads) =>
    entities.create(ctx, key, properties, request, uploads),
  )
const update = (
  ctx: PublicCtx,
  { key, identifier }: { key: string; identifier: string },
  body: unknown,
  request: Request,
) =>
  writeFromBody(ctx, key, 'update', { body, request }, (properties, uploads) =>
    entities.update(ctx, key, identifier, properties, request, uploads),
  )
const entityParams = t.Object({ key: t.String(), identifier: t.String() })

export const entityRoutes = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(formGuard('entities'))
  .get(
    '/',
    readDirectly((ctx, { key }, request) => pages.list(ctx, key!, request)),
    {
      anyone: true,
      detail: {
        operationId: 'listEntities',
        summary: 'List entities',
        parameters: [...filterParameters, ...searchParameters, ...pageParameters, ...shapeParameters].map(toParameter),
        description:
          'Filters: `field=value`, `field[$gt]=value` with $lt, $gt, $lte, $gte, $ne, $in, $nin, $exists, $like (`%`, `_`). The `Link` header contains the next page.',
        responses: {
          200: {
            ...jsonContent(t.Union([t.Array(Entity), QueryPlan]), 'The entities; with `$explain`, the query plan'),
            headers: { 'X-Total-Count-Estimated': ESTIMATED_HEADER },
          },
        },
      },
    },
  )
  .get(
    '/:identifier',
    readDirectly((ctx, { key, identifier }, request) => entities.get(ctx, key!, identifier!, request)),
    {
      anyone: true,
      detail: {
        operationId: 'getEntity',
        summary: 'Get an entity',
        parameters: [asOfParameter, ...shapeParameters].map(toParameter),
        responses: foundResponses,
      },
    },
  )
  .post('/', ({ ctx, params, body, request }) => create(ctx, params.key, body, request), {
    anyone: true,
    params: blueprintParams,
    detail: {
      operationId: 'createEntity',
      summary: 'Create an entity',
      requestBody: inputBody,
      responses: { 201: jsonContent(Entity, 'The new entity') },
    },
  })
  .put('/:identifier', ({ ctx, params, body, request }) => update(ctx, params, body, request), {
    anyone: true,
    params: entityParams,
    detail: {
      operationId: 'updateEntity',
      summary: 'Update an entity',
      requestBody: inputBody,
      responses: changedResponses,
    },
  })
  .patch('/:identifier', ({ ctx, params, body, request }) => update(ctx, params, body, request), {
    anyone: true,
    params: entityParams,
    detail: {
      operationId: 'patchEntity',
      summary: 'Update an entity',
      requestBody: inputBody,
      responses: changedResponses,
    },
  })
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
      description: 'Takes the filters of `listEntities`. `confirm` must be the key of the blueprint.',
    },
  })
  .delete('/:identifier', ({ ctx, params, request }) => entities.remove(ctx, params.key, params.identifier, request), {
    anyone: true,
    params: entityParams,
    response: { 200: EntityDeleted, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
    detail: {
      operationId: 'deleteEntity',
      summary: 'Delete an entity',
      parameters: [toParameter(['purge', 'boolean', 'true: also deletes its history; admins only'])],
    },
  })
