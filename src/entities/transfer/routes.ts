import { Elysia, t } from 'elysia'
import { guard, streamGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { Entity, filters, forms, json, ofBlueprint, parameter } from '../routes'
import { batch } from './batch'
import { exportAll } from './export'
import { importAll } from './import'

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
        'All or nothing: where one operation is refused, its refusal is the answer, and the paths of the details begin with `/operations/<number>`.',
      requestBody: json(Batch, 'up to 1,000 operations'),
      responses: { 200: json(BatchDone, 'what became of each'), 409: json(ProblemShape, 'one of them is refused') },
    },
  })

const text = (description: string) => ({
  description,
  content: Object.fromEntries(
    ['application/x-ndjson', 'text/csv'].map((type) => [type, { schema: { type: 'string' as const } }]),
  ),
})
const format = ['format', 'string', 'ndjson (unless told otherwise) or csv'] as const

const out = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(guard('entities'))
  .get('/export', ({ ctx, params, request }) => exportAll(ctx, params.key, request), {
    anyone: true,
    params: ofBlueprint,
    detail: {
      description:
        'All entities that match, the oldest first, with the filters of the list. In CSV, lists and objects are JSON, and ' +
        'texts that a spreadsheet would take for a formula have an apostrophe before them; only NDJSON can be populated.',
      parameters: [format, ...filters.filter(([name]) => name === '$select'), ...forms].map(parameter),
      responses: { 200: text('a line for each entity') },
    },
  })

const flags = [
  ['format', 'string', 'ndjson or csv, where the Content-Type does not tell'],
  ['mode', 'string', 'create, or upsert: what has the identifier of an entity changes it'],
  ['dryRun', 'boolean', 'only tells what would become of it'],
  ['atomic', 'boolean', 'keeps nothing when a line is refused'],
] as const

const into = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(streamGuard('entities'))
  .post('/import', ({ ctx, params, request }) => importAll(ctx, params.key, request), {
    can: 'user',
    params: ofBlueprint,
    detail: {
      description:
        'A line for each entity, flat, wrapped or as it was exported; a CSV begins with its columns, and an empty cell is ' +
        'no value. Lines that are refused are told, the first 1,000 of them, and left out.',
      parameters: flags.map(parameter),
      requestBody: text('the lines'),
    },
    response: {
      200: t.Object({
        imported: t.Number(),
        failed: t.Number(),
        errors: t.Array(t.Object({ line: t.Number(), code: t.String(), message: t.String() })),
      }),
      413: ProblemShape,
      415: ProblemShape,
    },
  })

/** Many entities at once: batches, exports and imports. */
export const transferRoutes = new Elysia().use(many).use(out).use(into)
