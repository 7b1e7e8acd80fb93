import { Elysia, status, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { ifMatchOf, sendPage, sendVersioned } from '../../core/response-headers'
import { SuccessShape } from '../../core/shapes'
import { listQuery } from '../../storage/pagination'
import * as configurations from '../configurations'
import {
  AppConfiguration,
  AppConfigurationChange,
  Configuration,
  ConfigurationChange,
  NewConfiguration,
} from '../shapes'

const keyParams = t.Object({ key: t.String() })
const updateResponse = { 200: Configuration, 404: ProblemShape, 412: ProblemShape }
const appUpdateResponse = { 200: AppConfiguration, 409: ProblemShape, 412: ProblemShape }

export const configurationRoutes = new Elysia({ prefix: '/configurations', tags: ['configurations'] })
  .use(guard('configurations'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, configurations.list(ctx, query)), {
    can: 'privileged',
    query: t.Object(listQuery),
    response: t.Array(Configuration),
    detail: { operationId: 'listConfigurations', summary: 'List configurations' },
  })
  .get('/app-configuration', ({ ctx, set }) => sendVersioned(set, configurations.getApp(ctx)), {
    open: true,
    response: AppConfiguration,
    detail: { operationId: 'getAppConfiguration', summary: 'Get the app configuration' },
  })
  .get('/:key', ({ ctx, params, set }) => sendVersioned(set, configurations.get(ctx, params.key)), {
    anyone: true,
    params: keyParams,
    response: { 200: Configuration, 401: ProblemShape, 403: ProblemShape, 404: ProblemShape },
    detail: { operationId: 'getConfiguration', summary: 'Get a configuration' },
  })
  .post('/', async ({ ctx, body, set }) => status(201, await sendVersioned(set, configurations.create(ctx, body))), {
    can: 'privileged',
    addsData: true,
    body: NewConfiguration,
    response: { 201: Configuration, 409: ProblemShape },
    detail: { operationId: 'createConfiguration', summary: 'Create a configuration' },
  })
  .put(
    '/app-configuration',
    ({ ctx, body, request, set }) => sendVersioned(set, configurations.updateApp(ctx, body, ifMatchOf(request))),
    {
      can: 'privileged',
      changesData: true,
      body: AppConfigurationChange,
      response: appUpdateResponse,
      detail: { operationId: 'updateAppConfiguration', summary: 'Update the app configuration' },
    },
  )
  .patch(
    '/app-configuration',
    ({ ctx, body, request, set }) => sendVersioned(set, configurations.updateApp(ctx, body, ifMatchOf(request))),
    {
      can: 'privileged',
      changesData: true,
      body: AppConfigurationChange,
      response: appUpdateResponse,
      detail: { operationId: 'patchAppConfiguration', summary: 'Update the app configuration' },
    },
  )
  .put(
    '/:key',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, configurations.update(ctx, params.key, body, ifMatchOf(request))),
    {
      can: 'privileged',
      changesData: true,
      params: keyParams,
      body: ConfigurationChange,
      response: updateResponse,
      detail: { operationId: 'updateConfiguration', summary: 'Update a configuration' },
    },
  )
  .patch(
    '/:key',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, configurations.update(ctx, params.key, body, ifMatchOf(request))),
    {
      can: 'privileged',
      changesData: true,
      params: keyParams,
      body: ConfigurationChange,
      response: updateResponse,
      detail: { operationId: 'patchConfiguration', summary: 'Update a configuration' },
    },
  )
  .delete('/:key', ({ ctx, params, request }) => configurations.remove(ctx, params.key, ifMatchOf(request)), {
    can: 'privileged',
    params: keyParams,
    response: { 200: SuccessShape, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape },
    detail: { operationId: 'deleteConfiguration', summary: 'Delete a configuration' },
  })
