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
    detail: { operationId: 'listLambdas', summary: 'List lambdas' },
  })
  .get('/:id', ({ ctx, params, request, set }) => lambdas.get(ctx, params.id, { request, set }), {
    can: 'privileged',
    params: one,
    response: { 200: Lambda, 404: ProblemShape },
    detail: { operationId: 'getLambda', summary: 'Get a lambda' },
  })
  .post('/', async ({ ctx, body, request, set }) => status(201, await lambdas.create(ctx, body, { request, set })), {
    can: 'privileged',
    body: NewLambda,
    response: { 201: Lambda, 409: ProblemShape, 503: ProblemShape },
    detail: { operationId: 'createLambda', summary: 'Create a lambda' },
  })
  .put('/:id', ({ ctx, params, body, request, set }) => lambdas.change(ctx, params.id, body, { request, set }), {
    can: 'privileged',
    params: one,
    body: LambdaChange,
    response: changed,
    detail: { operationId: 'updateLambda', summary: 'Update a lambda' },
  })
  .patch('/:id', ({ ctx, params, body, request, set }) => lambdas.change(ctx, params.id, body, { request, set }), {
    can: 'privileged',
    params: one,
    body: LambdaChange,
    response: changed,
    detail: { operationId: 'patchLambda', summary: 'Update a lambda' },
  })
  .delete('/:id', ({ ctx, params, request, set }) => lambdas.remove(ctx, params.id, { request, set }), {
    can: 'privileged',
    params: one,
    response: { 200: done, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
    detail: { operationId: 'deleteLambda', summary: 'Delete a lambda' },
  })
  .get(
    '/:id/versions',
    ({ ctx, params, query, request, set }) => versions.list(ctx, params.id, query, { request, set }),
    {
      can: 'privileged',
      params: one,
      query: t.Object(listing),
      response: { 200: t.Array(Version), 404: ProblemShape },
      detail: { operationId: 'listLambdaVersions', summary: 'List the versions of a lambda' },
    },
  )
  .post(
    '/:id/rollback',
    ({ ctx, params, body, request, set }) => versions.rollback(ctx, params.id, body.version, { request, set }),
    {
      can: 'privileged',
      params: one,
      body: Rollback,
      response: changed,
      detail: {
        operationId: 'rollbackLambda',
        summary: 'Restore an earlier version of a lambda',
        description: 'The restored code becomes a new version.',
      },
    },
  )
  .post('/:id/execute', ({ ctx, params, body, request }) => execute(ctx, params.id, body, request), {
    can: 'privileged',
    params: one,
    body: orNothing(Input),
    detail: {
      operationId: 'executeLambda',
      summary: 'Run a lambda',
      description: 'Runs the lambda with this input, and answers with its result and its log.',
      responses: { 200: json(Execution, 'what came of it'), 404: json(ProblemShape, 'there is none') },
    },
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
    detail: { operationId: 'listLambdaLogs', summary: 'List the runs of a lambda' },
  })
