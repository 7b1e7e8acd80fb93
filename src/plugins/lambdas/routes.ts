import { Elysia, status, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { done, one, orNothing, textMatching } from '../../core/shapes'
import { json } from '../../entities/routes'
import { growingListing, listing } from '../../storage/lists'
import * as lambdas from './lambdas'
import { execute } from './run'
import * as runs from './runs'
import { Execution, Input, Lambda, LambdaChange, LambdaRun, NewLambda, Rollback, Version } from './shapes'
import * as versions from './versions'

const maybe = (description: string) => t.Optional(t.String({ description }))
const changed = { 200: Lambda, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape, 503: ProblemShape }

export const lambdaRoutes = new Elysia({ prefix: '/lambdas', tags: ['lambdas'] })
  .use(guard('lambdas'))
  .get('/', ({ ctx, query, request, set }) => lambdas.list(ctx, query, { request, set }), {
    can: 'privileged',
    query: t.Object({ ...listing, name: maybe('only those of this name') }),
    response: t.Array(Lambda),
  })
  .get('/:id', ({ ctx, params, request, set }) => lambdas.get(ctx, params.id, { request, set }), {
    can: 'privileged',
    params: one,
    response: { 200: Lambda, 404: ProblemShape },
  })
  .post('/', async ({ ctx, body, request, set }) => status(201, await lambdas.create(ctx, body, { request, set })), {
    can: 'privileged',
    body: NewLambda,
    response: { 201: Lambda, 409: ProblemShape, 503: ProblemShape },
  })
  .put('/:id', ({ ctx, params, body, request, set }) => lambdas.change(ctx, params.id, body, { request, set }), {
    can: 'privileged',
    params: one,
    body: LambdaChange,
    response: changed,
  })
  .patch('/:id', ({ ctx, params, body, request, set }) => lambdas.change(ctx, params.id, body, { request, set }), {
    can: 'privileged',
    params: one,
    body: LambdaChange,
    response: changed,
  })
  .delete('/:id', ({ ctx, params, request, set }) => lambdas.remove(ctx, params.id, { request, set }), {
    can: 'privileged',
    params: one,
    response: { 200: done, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
  })
  .get(
    '/:id/versions',
    ({ ctx, params, query, request, set }) => versions.list(ctx, params.id, query, { request, set }),
    {
      can: 'privileged',
      params: one,
      query: t.Object(listing),
      response: { 200: t.Array(Version), 404: ProblemShape },
    },
  )
  .post(
    '/:id/rollback',
    ({ ctx, params, body, request, set }) => versions.rollback(ctx, params.id, body.version, { request, set }),
    { can: 'privileged', params: one, body: Rollback, response: changed },
  )
  .post('/:id/execute', ({ ctx, params, body, request }) => execute(ctx, params.id, body, request), {
    can: 'privileged',
    params: one,
    body: orNothing(Input),
    detail: { responses: { 200: json(Execution, 'what came of it'), 404: json(ProblemShape, 'there is none') } },
  })
  .get('/:id/logs', ({ ctx, params, query, request, set }) => runs.list(ctx, params.id, query, { request, set }), {
    can: 'privileged',
    params: one,
    query: t.Object({
      ...growingListing,
      status: t.Optional(
        textMatching('^([1-5]\\d\\d|undefined)?$', 'Write a status from 100 to 599.', {
          description: 'only runs of this status',
        }),
      ),
      trigger: maybe('what they were run by'),
    }),
    response: { 200: t.Array(LambdaRun), 404: ProblemShape },
  })
