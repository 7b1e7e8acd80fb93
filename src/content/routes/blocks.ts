import { Elysia, status, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { ifMatchOf, sendPage, sendVersioned } from '../../core/response-headers'
import { flag, IdParams, SuccessShape } from '../../core/shapes'
import { listQuery } from '../../storage/pagination'
import * as blocks from '../blocks'
import { Block, BlockChange, NewBlock } from '../shapes'

const rawOption = { raw: flag }
const rawQuery = t.Object(rawOption)
const blockListQuery = t.Object({
  ...listQuery,
  ...rawOption,
  name: t.Optional(t.String({ description: 'filter by name' })),
  contentType: t.Optional(t.Union(['content', 'html', 'undefined', ''].map((value) => t.Literal(value)))),
})
const updateResponse = { 200: Block, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape }

export const blockRoutes = new Elysia({ prefix: '/blocks', tags: ['blocks'] })
  .use(guard('blocks'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, blocks.list(ctx, query)), {
    can: 'user',
    query: blockListQuery,
    response: t.Array(Block),
    detail: { operationId: 'listBlocks', summary: 'List blocks' },
  })
  .get('/:id', ({ ctx, params, query, set }) => sendVersioned(set, blocks.get(ctx, params.id, query)), {
    can: 'user',
    params: IdParams,
    query: rawQuery,
    response: { 200: Block, 404: ProblemShape },
    detail: { operationId: 'getBlock', summary: 'Get a block' },
  })
  .post(
    '/',
    async ({ ctx, body, query, set }) => status(201, await sendVersioned(set, blocks.create(ctx, body, query))),
    {
      can: 'user',
      addsData: true,
      body: NewBlock,
      query: rawQuery,
      response: { 201: Block, 409: ProblemShape },
      detail: { operationId: 'createBlock', summary: 'Create a block' },
    },
  )
  .put(
    '/:id',
    ({ ctx, params, body, query, request, set }) =>
      sendVersioned(set, blocks.update(ctx, params.id, body, { ...query, ...ifMatchOf(request) })),
    {
      can: 'user',
      addsData: true,
      params: IdParams,
      body: BlockChange,
      query: rawQuery,
      response: updateResponse,
      detail: { operationId: 'updateBlock', summary: 'Update a block' },
    },
  )
  .patch(
    '/:id',
    ({ ctx, params, body, query, request, set }) =>
      sendVersioned(set, blocks.update(ctx, params.id, body, { ...query, ...ifMatchOf(request) })),
    {
      can: 'user',
      addsData: true,
      params: IdParams,
      body: BlockChange,
      query: rawQuery,
      response: updateResponse,
      detail: { operationId: 'patchBlock', summary: 'Update a block' },
    },
  )
  .delete('/:id', ({ ctx, params, request }) => blocks.remove(ctx, params.id, ifMatchOf(request)), {
    can: 'user',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape, 412: ProblemShape },
    detail: { operationId: 'deleteBlock', summary: 'Delete a block' },
  })
