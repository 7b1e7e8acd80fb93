import { Elysia, status, t } from 'elysia'
import type { Ctx } from '../accounts/context'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { type HttpContext, ifMatchOf, sendPage, sendVersioned } from '../core/response-headers'
import { flag, isTrue, SuccessShape } from '../core/shapes'
import { listQuery } from '../storage/pagination'
import { disableIdleTimeout } from '../tenancy/client-connection'
import * as blueprints from './blueprints'
import { explain } from './explain'
import { listIndexes } from './index-list'
import {
  Blueprint,
  BlueprintChange,
  ExplanationQuery,
  FieldIndexShape,
  NewBlueprint,
  PermissionExplanation,
  UpdatedBlueprint,
} from './shapes'
import * as changes from './update'

// The client is a large text, which few requests need.
const loadGenerator = () => import('./typegen/generator')

const keyParams = t.Object({ key: t.String() })
const blueprintResponse = { 200: Blueprint, 404: ProblemShape }
/** Returns a new object for each route, because Elysia mutates it. */
const updateRoute = (operationId: string) =>
  ({
    beforeHandle: ({ request }: { request: Request }) => disableIdleTimeout(request),
    can: 'editor',
    params: keyParams,
    query: t.Object({ dryRun: flag }),
    body: BlueprintChange,
    response: { ...blueprintResponse, 200: UpdatedBlueprint, 202: Blueprint, 409: ProblemShape, 412: ProblemShape },
    detail: {
      operationId,
      summary: 'Update a blueprint',
      description:
        'With `dryRun=true`, nothing changes; the response reports the effects on existing entities. 202: the change takes effect once all entities are migrated.',
    },
  }) as const

async function handleUpdate(
  ctx: Ctx,
  key: string,
  { dryRun }: { dryRun?: string },
  body: BlueprintChange,
  { request, set }: HttpContext,
) {
  if (isTrue(dryRun)) return changes.dryRun(ctx, key, body, ifMatchOf(request))
  const { isUnderWay, ...blueprint } = await changes.update(ctx, key, body, ifMatchOf(request))
  return status(isUnderWay ? 202 : 200, await sendVersioned(set, blueprint))
}

const sourceResponse = (description: string) => ({
  description,
  content: { 'text/plain': { schema: { type: 'string' as const } } },
})

export const blueprintRoutes = new Elysia({ prefix: '/blueprints', tags: ['blueprints'] })
  .use(guard('blueprints'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, blueprints.list(ctx, query)), {
    can: 'user',
    query: t.Object(listQuery),
    response: t.Array(Blueprint),
    detail: { operationId: 'listBlueprints', summary: 'List blueprints' },
  })
  .get('/types.d.ts', async ({ ctx, request }) => (await loadGenerator()).sendTypes(ctx, 'types', request), {
    can: 'editor',
    detail: {
      operationId: 'getBlueprintTypes',
      summary: 'Download the TypeScript types of all blueprints',
      description: 'The TypeScript types of all blueprints.',
      responses: { 200: sourceResponse('The type declarations') },
    },
  })
  .get('/client.ts', async ({ ctx, request }) => (await loadGenerator()).sendTypes(ctx, 'client', request), {
    can: 'editor',
    detail: {
      operationId: 'getBlueprintClient',
      summary: 'Download a typed TypeScript client',
      description: 'The TypeScript types of all blueprints and a client for them, in one file without dependencies.',
      responses: { 200: sourceResponse('The source code of the client') },
    },
  })
  .get('/:key', ({ ctx, params, set }) => sendVersioned(set, blueprints.get(ctx, params.key)), {
    can: 'user',
    params: keyParams,
    response: blueprintResponse,
    detail: { operationId: 'getBlueprint', summary: 'Get a blueprint' },
  })
  .get('/:key/permissions/explain', ({ ctx, params, query }) => explain(ctx, params.key, query), {
    can: 'privileged',
    params: keyParams,
    query: ExplanationQuery,
    response: { 200: PermissionExplanation, 404: ProblemShape },
    detail: {
      operationId: 'explainPermissions',
      summary: 'Explain the permissions of a user on a blueprint',
      description:
        'Returns the operations that a user may perform, and the rules that allow them. Omit `user` for guests, and `workspace` for a user outside any workspace.',
    },
  })
  .get('/:key/indexes', ({ ctx, params }) => listIndexes(ctx, params.key), {
    can: 'editor',
    params: keyParams,
    response: { 200: t.Array(FieldIndexShape), 404: ProblemShape },
    detail: {
      operationId: 'listIndexes',
      summary: 'List the indexes of a blueprint',
      description:
        'Returns the indexed fields, and why each has an index. Most indexes are built when a query over many entities first filters or sorts by a field, and removed after 30 days without use.',
    },
  })
  .post('/', async ({ ctx, body, set }) => status(201, await sendVersioned(set, blueprints.create(ctx, body))), {
    can: 'editor',
    addsData: true,
    body: NewBlueprint,
    response: { 201: Blueprint, 409: ProblemShape },
    detail: { operationId: 'createBlueprint', summary: 'Create a blueprint' },
  })
  .put(
    '/:key',
    ({ ctx, params, query, body, request, set }) => handleUpdate(ctx, params.key, query, body, { request, set }),
    updateRoute('updateBlueprint'),
  )
  .patch(
    '/:key',
    ({ ctx, params, query, body, request, set }) => handleUpdate(ctx, params.key, query, body, { request, set }),
    updateRoute('patchBlueprint'),
  )
  .delete(
    '/:key',
    ({ ctx, params, query, request }) =>
      blueprints.remove(ctx, params.key, { force: isTrue(query.force), ...ifMatchOf(request) }),
    {
      can: 'editor',
      params: keyParams,
      query: t.Object({ force: flag }),
      response: { 200: SuccessShape, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
      detail: {
        operationId: 'deleteBlueprint',
        summary: 'Delete a blueprint',
        description: '`force=true` also deletes its entities.',
      },
    },
  )
