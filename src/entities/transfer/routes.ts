import { Elysia, t } from 'elysia'
import { guard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { Entity, json, ofBlueprint } from '../routes'
import { batch } from './batch'

const Batch = t.Object({
  operations: t.Array(
    t.Object({
      op: t.Union(['create', 'update', 'upsert', 'delete'].map((op) => t.Literal(op))),
      identifier: t.Optional(t.String()),
      data: t.Optional(t.Record(t.String(), t.Unknown())),
    }),
    { maxItems: 1_000 },
  ),
})
const BatchDone = t.Object({
  results: t.Array(
    t.Object({ op: t.String(), identifier: t.String(), status: t.Number(), entity: t.Optional(Entity) }),
  ),
})

const many = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(guard('entities'))
  .post('/batch', ({ ctx, params, body, request }) => batch(ctx, params.key, body, request), {
    anyone: true,
    params: ofBlueprint,
    detail: {
      description:
        'All or nothing: where one operation is refused, its refusal is the answer, with its `index` in the details.',
      requestBody: json(Batch, 'up to 1,000 operations'),
      responses: { 200: json(BatchDone, 'what became of each'), 409: json(ProblemShape, 'one of them is refused') },
    },
  })

/** Many entities at once: batches, exports and imports. */
export const transferRoutes = new Elysia().use(many)
