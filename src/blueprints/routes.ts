import { Elysia, status, t } from 'elysia'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { done, flag, isOn } from '../core/shapes'
import { listing } from '../storage/lists'
import * as blueprints from './blueprints'
import { explain } from './explain'
import { Blueprint, BlueprintChange, Explanation, ExplanationQuery, NewBlueprint } from './shapes'
import { file } from './types/files'

const byKey = t.Object({ key: t.String() })
const found = { 200: Blueprint, 404: ProblemShape }
const changed = { ...found, 409: ProblemShape }

const source = { description: 'the file', content: { 'text/plain': { schema: { type: 'string' as const } } } }

export const blueprintRoutes = new Elysia({ prefix: '/blueprints', tags: ['blueprints'] })
  .use(guard('blueprints'))
  .get('/', ({ ctx, query, request, set }) => blueprints.list(ctx, query, { request, set }), {
    can: 'user',
    query: t.Object(listing),
    response: t.Array(Blueprint),
  })
  .get('/types.d.ts', ({ ctx, request }) => file(ctx, 'types', request), {
    can: 'editor',
    detail: { description: 'TypeScript: the types of all blueprints.', responses: { 200: source } },
  })
  .get('/client.ts', ({ ctx, request }) => file(ctx, 'client', request), {
    can: 'editor',
    detail: {
      description: 'TypeScript: the types of all blueprints and a client of them, in one file that needs nothing else.',
      responses: { 200: source },
    },
  })
  .get('/:key', ({ ctx, params, request, set }) => blueprints.get(ctx, params.key, { request, set }), {
    can: 'user',
    params: byKey,
    response: found,
  })
  .get('/:key/permissions/explain', ({ ctx, params, query }) => explain(ctx, params.key, query), {
    can: 'privileged',
    params: byKey,
    query: ExplanationQuery,
    response: { 200: Explanation, 404: ProblemShape },
    detail: {
      description:
        'Tells which rules allow a user what, and why. Without `user` it is about guests, without `workspace` about who is in none.',
    },
  })
  .post('/', async ({ ctx, body, request, set }) => status(201, await blueprints.create(ctx, body, { request, set })), {
    can: 'editor',
    body: NewBlueprint,
    response: { 201: Blueprint, 409: ProblemShape },
  })
  .put('/:key', ({ ctx, params, body, request, set }) => blueprints.change(ctx, params.key, body, { request, set }), {
    can: 'editor',
    params: byKey,
    body: BlueprintChange,
    response: changed,
  })
  .patch('/:key', ({ ctx, params, body, request, set }) => blueprints.change(ctx, params.key, body, { request, set }), {
    can: 'editor',
    params: byKey,
    body: BlueprintChange,
    response: changed,
  })
  .delete(
    '/:key',
    ({ ctx, params, query, request, set }) => blueprints.remove(ctx, params.key, isOn(query.force), { request, set }),
    {
      can: 'editor',
      params: byKey,
      query: t.Object({ force: flag }),
      response: { 200: done, 404: ProblemShape, 409: ProblemShape },
    },
  )
