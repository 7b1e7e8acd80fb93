import { Elysia, status, t } from 'elysia'
import { type Ctx, guard } from '../accounts/guard'
import type { Answer } from '../core/etag'
import { ProblemShape } from '../core/problem'
import { done, flag, isOn } from '../core/shapes'
import { listing } from '../storage/lists'
import * as blueprints from './blueprints'
import * as changes from './changes'
import { explain } from './explain'
import { Blueprint, BlueprintChange, Explanation, ExplanationQuery, NewBlueprint, Rehearsal } from './shapes'
import { file } from './types/files'

const byKey = t.Object({ key: t.String() })
const found = { 200: Blueprint, 404: ProblemShape }
/** One for each route: Elysia changes what it gets. */
const changing = (operationId: string) =>
  ({
    can: 'editor',
    params: byKey,
    query: t.Object({ dryRun: flag }),
    body: BlueprintChange,
    response: { ...found, 200: t.Union([Rehearsal, Blueprint]), 202: Blueprint, 409: ProblemShape, 412: ProblemShape },
    detail: {
      operationId,
      summary: 'Update a blueprint',
      description:
        'With `dryRun=true` it changes nothing, and tells what it would do to the entities that are there. 202: it comes into force when all of them are prepared for it.',
    },
  }) as const

async function changed(ctx: Ctx, key: string, { dryRun }: { dryRun?: string }, body: BlueprintChange, answer: Answer) {
  if (isOn(dryRun)) return changes.rehearse(ctx, key, body, answer)
  const done = await changes.change(ctx, key, body, answer)
  return status(done.status, done.body)
}

const source = { description: 'the file', content: { 'text/plain': { schema: { type: 'string' as const } } } }

export const blueprintRoutes = new Elysia({ prefix: '/blueprints', tags: ['blueprints'] })
  .use(guard('blueprints'))
  .get('/', ({ ctx, query, request, set }) => blueprints.list(ctx, query, { request, set }), {
    can: 'user',
    query: t.Object(listing),
    response: t.Array(Blueprint),
    detail: { operationId: 'listBlueprints', summary: 'List blueprints' },
  })
  .get('/types.d.ts', ({ ctx, request }) => file(ctx, 'types', request), {
    can: 'editor',
    detail: {
      operationId: 'getBlueprintTypes',
      summary: 'Download the TypeScript types of all blueprints',
      description: 'TypeScript: the types of all blueprints.',
      responses: { 200: source },
    },
  })
  .get('/client.ts', ({ ctx, request }) => file(ctx, 'client', request), {
    can: 'editor',
    detail: {
      operationId: 'getBlueprintClient',
      summary: 'Download a typed TypeScript client',
      description: 'TypeScript: the types of all blueprints and a client of them, in one file that needs nothing else.',
      responses: { 200: source },
    },
  })
  .get('/:key', ({ ctx, params, request, set }) => blueprints.get(ctx, params.key, { request, set }), {
    can: 'user',
    params: byKey,
    response: found,
    detail: { operationId: 'getBlueprint', summary: 'Get a blueprint' },
  })
  .get('/:key/permissions/explain', ({ ctx, params, query }) => explain(ctx, params.key, query), {
    can: 'privileged',
    params: byKey,
    query: ExplanationQuery,
    response: { 200: Explanation, 404: ProblemShape },
    detail: {
      operationId: 'explainPermissions',
      summary: 'Explain what a user may do with a blueprint',
      description:
        'Tells which rules allow a user what, and why. Without `user` it is about guests, without `workspace` about who is in none.',
    },
  })
  .post('/', async ({ ctx, body, request, set }) => status(201, await blueprints.create(ctx, body, { request, set })), {
    can: 'editor',
    body: NewBlueprint,
    response: { 201: Blueprint, 409: ProblemShape },
    detail: { operationId: 'createBlueprint', summary: 'Create a blueprint' },
  })
  .put(
    '/:key',
    ({ ctx, params, query, body, request, set }) => changed(ctx, params.key, query, body, { request, set }),
    changing('updateBlueprint'),
  )
  .patch(
    '/:key',
    ({ ctx, params, query, body, request, set }) => changed(ctx, params.key, query, body, { request, set }),
    changing('patchBlueprint'),
  )
  .delete(
    '/:key',
    ({ ctx, params, query, request, set }) => blueprints.remove(ctx, params.key, isOn(query.force), { request, set }),
    {
      can: 'editor',
      params: byKey,
      query: t.Object({ force: flag }),
      response: { 200: done, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
      detail: {
        operationId: 'deleteBlueprint',
        summary: 'Delete a blueprint',
        description: '`force=true` also deletes its entities.',
      },
    },
  )
