import { Elysia, status, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { done, flag, one } from '../../core/shapes'
import { listing } from '../../storage/lists'
import * as blocks from '../blocks'
import { Block, BlockChange, NewBlock } from '../shapes'

const raw = { raw: flag }
const query = t.Object(raw)
const list = t.Object({
  ...listing,
  ...raw,
  name: t.Optional(t.String({ description: 'only those of this name' })),
  contentType: t.Optional(t.Union(['content', 'html', 'undefined', ''].map((value) => t.Literal(value)))),
})
const changed = { 200: Block, 404: ProblemShape, 409: ProblemShape, 412: ProblemShape }

export const blockRoutes = new Elysia({ prefix: '/blocks', tags: ['blocks'] })
  .use(guard('blocks'))
  .get('/', ({ ctx, query, request, set }) => blocks.list(ctx, query, { request, set }), {
    can: 'user',
    query: list,
    response: t.Array(Block),
    detail: { operationId: 'listBlocks', summary: 'List blocks' },
  })
  .get('/:id', ({ ctx, params, query, request, set }) => blocks.get(ctx, params.id, query, { request, set }), {
    can: 'user',
    params: one,
    query,
    response: { 200: Block, 404: ProblemShape },
    detail: { operationId: 'getBlock', summary: 'Get a block' },
  })
  .post(
    '/',
    async ({ ctx, body, query, request, set }) => status(201, await blocks.create(ctx, body, query, { request, set })),
    {
      can: 'user',
      body: NewBlock,
      query,
      response: { 201: Block, 409: ProblemShape },
      detail: { operationId: 'createBlock', summary: 'Create a block' },
    },
  )
  .put(
    '/:id',
    ({ ctx, params, body, query, request, set }) => blocks.change(ctx, params.id, body, query, { request, set }),
    {
      can: 'user',
      params: one,
      body: BlockChange,
      query,
      response: changed,
      detail: { operationId: 'updateBlock', summary: 'Update a block' },
    },
  )
  .patch(
    '/:id',
    ({ ctx, params, body, query, request, set }) => blocks.change(ctx, params.id, body, query, { request, set }),
    {
      can: 'user',
      params: one,
      body: BlockChange,
      query,
      response: changed,
      detail: { operationId: 'patchBlock', summary: 'Update a block' },
    },
  )
  .delete('/:id', ({ ctx, params, request, set }) => blocks.remove(ctx, params.id, { request, set }), {
    can: 'user',
    params: one,
    response: { 200: done, 404: ProblemShape, 412: ProblemShape },
    detail: { operationId: 'deleteBlock', summary: 'Delete a block' },
  })
