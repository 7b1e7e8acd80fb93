import { Elysia, status, t } from 'elysia'
import { guard } from '../accounts/guard'
import { ProblemShape } from '../core/problem'
import { ifMatchOf, sendPage, sendVersioned } from '../core/response-headers'
import { IdParams, optionalBody, SuccessShape, textMatching } from '../core/shapes'
import { jsonContent } from '../entities/parameters'
import { growingListQuery, listQuery } from '../storage/pagination'
import * as lambdas from './lambdas'
import { executeLambda } from './run'
import * as runs from './runs'
import { Execution, Input, Lambda, LambdaChange, LambdaRun, NewLambda, Rollback, RunSummary, Version } from './shapes'
import * as versions from './versions'

const optionalText = (description: string) => t.Optional(t.String({ description }))
const changeResponses = { 200: Lambda, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape, 503: ProblemShape }

export const lambdaRoutes = new Elysia({ prefix: '/lambdas', tags: ['lambdas'] })
  .use(guard('lambdas'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, lambdas.list(ctx, query)), {
    can: 'privileged',
    query: t.Object({ ...listQuery, name: optionalText('only those with this name') }),
    response: t.Array(Lambda),
    detail: { operationId: 'listLambdas', summary: 'List lambdas' },
  })
  .get('/runs', ({ ctx, request }) => runs.summarize(ctx, request), {
    can: 'privileged',
    response: t.Array(RunSummary),
    detail: { operationId: 'summarizeLambdaRuns', summary: 'Count the runs and failures of each lambda' },
  })
  .get('/:id', ({ ctx, params, set }) => sendVersioned(set, lambdas.get(ctx, params.id)), {
    can: 'privileged',
    params: IdParams,
    response: { 200: Lambda, 404: ProblemShape },
    detail: { operationId: 'getLambda', summary: 'Get a lambda' },
  })
  .post('/', async ({ ctx, body, set }) => status(201, await sendVersioned(set, lambdas.create(ctx, body))), {
    can: 'privileged',
    addsData: true,
    body: NewLambda,
    response: { 201: Lambda, 409: ProblemShape, 503: ProblemShape },
    detail: { operationId: 'createLambda', summary: 'Create a lambda' },
  })
  .put(
    '/:id',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, lambdas.change(ctx, params.id, body, ifMatchOf(request))),
    {
      can: 'privileged',
      params: IdParams,
      addsData: true,
      body: LambdaChange,
      response: changeResponses,
      detail: { operationId: 'updateLambda', summary: 'Update a lambda' },
    },
  )
  .patch(
    '/:id',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, lambdas.change(ctx, params.id, body, ifMatchOf(request))),
    {
      can: 'privileged',
      params: IdParams,
      addsData: true,
      body: LambdaChange,
      response: changeResponses,
      detail: { operationId: 'patchLambda', summary: 'Update a lambda' },
    },
  )
  .delete('/:id', ({ ctx, params, request }) => lambdas.remove(ctx, params.id, ifMatchOf(request)), {
    can: 'privileged',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
    detail: { operationId: 'deleteLambda', summary: 'Delete a lambda' },
  })
  .get(
    '/:id/versions',
    ({ ctx, params, query, request, set }) => sendPage({ request, set }, versions.list(ctx, params.id, query)),
    {
      can: 'privileged',
      params: IdParams,
      query: t.Object(listQuery),
      response: { 200: t.Array(Version), 404: ProblemShape },
      detail: { operationId: 'listLambdaVersions', summary: 'List the versions of a lambda' },
    },
  )
  .post(
    '/:id/rollback',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, versions.rollback(ctx, params.id, body.version, ifMatchOf(request))),
    {
      can: 'privileged',
      params: IdParams,
      body: Rollback,
      response: changeResponses,
      detail: {
        operationId: 'rollbackLambda',
        summary: 'Restore an earlier version of a lambda',
        description: 'The restored code becomes a new version.',
      },
    },
  )
  .post('/:id/execute', ({ ctx, params, body, request }) => executeLambda(ctx, params.id, body, request), {
    can: 'privileged',
    costly: true,
    params: IdParams,
    body: optionalBody(Input),
    detail: {
      operationId: 'executeLambda',
      summary: 'Run a lambda',
      description: 'Runs the lambda with this input, and answers with its result and its log.',
      responses: {
        200: jsonContent(Execution, 'The result of the lambda, and what it logged'),
        404: jsonContent(ProblemShape, 'There is no such lambda'),
      },
    },
  })
  .get(
    '/:id/logs',
    ({ ctx, params, query, request, set }) => sendPage({ request, set }, runs.list(ctx, params.id, query)),
    {
      can: 'privileged',
      params: IdParams,
      query: t.Object({
        ...growingListQuery,
        status: t.Optional(
          textMatching('^([1-5]\\d\\d|undefined)?$', 'Write a status from 100 to 599.', {
            description: 'only runs with this status',
          }),
        ),
        trigger: optionalText('only runs with this trigger'),
      }),
      response: { 200: t.Array(LambdaRun), 404: ProblemShape },
      detail: { operationId: 'listLambdaLogs', summary: 'List the runs of a lambda' },
    },
  )
