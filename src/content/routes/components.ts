import { Elysia, status, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { ifMatchOf, sendPage, sendVersioned } from '../../core/response-headers'
import { SuccessShape } from '../../core/shapes'
import { listQuery } from '../../storage/pagination'
import * as builds from '../builds'
import { upsertAll } from '../bulk-upsert'
import * as components from '../components'
import { Component, ComponentBulk, ComponentBulkResult, ComponentChange, NewComponent, StaticFiles } from '../shapes'

const componentListQuery = t.Object(listQuery)
const nameParams = t.Object({ id: t.String({ description: 'identifier or `_id`' }) })
const updateResponse = { 200: Component, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape }

export const componentRoutes = new Elysia({ prefix: '/components', tags: ['components'] })
  .use(guard('components'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, components.list(ctx, query)), {
    can: 'user',
    query: componentListQuery,
    response: t.Array(Component),
    detail: { operationId: 'listComponents', summary: 'List components' },
  })
  .get('/:id', ({ ctx, params, set }) => sendVersioned(set, components.get(ctx, params.id)), {
    can: 'user',
    params: nameParams,
    response: { 200: Component, 404: ProblemShape },
    detail: { operationId: 'getComponent', summary: 'Get a component' },
  })
  .post('/', async ({ ctx, body, set }) => status(201, await sendVersioned(set, components.create(ctx, body))), {
    can: 'editor',
    addsData: true,
    body: NewComponent,
    response: { 201: Component, 409: ProblemShape },
    detail: { operationId: 'createComponent', summary: 'Create a component' },
  })
  .post('/bulk', ({ ctx, body }) => upsertAll(ctx, body.components), {
    can: 'editor',
    addsData: true,
    body: ComponentBulk,
    response: ComponentBulkResult,
    detail: {
      operationId: 'putComponents',
      summary: 'Create or update many components',
      description:
        'Components are processed independently. The response reports whether each was created, updated or rejected.',
    },
  })
  .put(
    '/:id',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, components.update(ctx, params.id, body, ifMatchOf(request))),
    {
      can: 'editor',
      addsData: true,
      params: nameParams,
      body: ComponentChange,
      response: updateResponse,
      detail: { operationId: 'updateComponent', summary: 'Update a component' },
    },
  )
  .patch(
    '/:id',
    ({ ctx, params, body, request, set }) =>
      sendVersioned(set, components.update(ctx, params.id, body, ifMatchOf(request))),
    {
      can: 'editor',
      addsData: true,
      params: nameParams,
      body: ComponentChange,
      response: updateResponse,
      detail: { operationId: 'patchComponent', summary: 'Update a component' },
    },
  )
  .delete('/:id', ({ ctx, params, request }) => components.remove(ctx, params.id, ifMatchOf(request)), {
    can: 'editor',
    params: nameParams,
    response: { 200: SuccessShape, 404: ProblemShape, 412: ProblemShape },
    detail: { operationId: 'deleteComponent', summary: 'Delete a component' },
  })

export const staticRoutes = new Elysia({ prefix: '/static', tags: ['components'] })
  .use(guard('static'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, builds.list(ctx, query)), {
    open: true,
    query: componentListQuery,
    response: t.Array(StaticFiles),
    detail: { operationId: 'listStaticFiles', summary: 'List compiled component files' },
  })
  .get('/:file', ({ ctx, params, request }) => builds.getFile(ctx, params.file, request), {
    open: true,
    params: t.Object({ file: t.String({ description: '`<identifier>.<hash>.js`, or `.css`' }) }),
    detail: {
      operationId: 'getStaticFile',
      summary: 'Download a compiled component file',
      responses: {
        200: { description: 'The immutable file', content: { 'text/javascript': {}, 'text/css': {} } },
        404: { description: 'The file does not exist', content: { 'application/json': { schema: ProblemShape } } },
      },
    },
  })
