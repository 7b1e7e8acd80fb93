import { Elysia } from 'elysia'
import { guard, streamGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { filters, forms, json, ofBlueprint, parameter } from '../routes'
import { EntityBatch, EntityBatchResult, EntityImportResult } from '../shapes'
import { batch } from './batch'
import { exportAll } from './export'
import { importAll } from './import'

const many = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(guard('entities'))
  .post('/batch', ({ ctx, params, body, request }) => batch(ctx, params.key, body, request), {
    anyone: true,
    params: ofBlueprint,
    detail: {
      operationId: 'batchEntities',
      summary: 'Write up to 1,000 entities in one transaction',
      description:
        'All or nothing: where one operation is refused, its refusal is the answer, and the paths of the details begin with `/operations/<number>`.',
      requestBody: json(EntityBatch, 'Up to 1,000 operations'),
      responses: {
        200: json(EntityBatchResult, 'The result of each operation'),
        409: json(ProblemShape, 'One of the operations is refused'),
      },
    },
  })

const text = (description: string) => ({
  description,
  content: Object.fromEntries(
    ['application/x-ndjson', 'text/csv'].map((type) => [type, { schema: { type: 'string' as const } }]),
  ),
})
const format = ['format', 'string', 'default: ndjson', { enum: ['ndjson', 'csv'] }] as const

const out = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(guard('entities'))
  .get('/export', ({ ctx, params, request }) => exportAll(ctx, params.key, request), {
    anyone: true,
    params: ofBlueprint,
    detail: {
      operationId: 'exportEntities',
      summary: 'Export entities as NDJSON or CSV',
      description:
        'All entities that match, the oldest first, with the filters of the list. In CSV, lists and objects are JSON, and ' +
        'texts that a spreadsheet would take for a formula have an apostrophe before them; only NDJSON can be populated.',
      parameters: [format, ...filters.filter(([name]) => name === '$select'), ...forms].map(parameter),
      responses: { 200: text('A line for each entity') },
    },
  })

const flags = [
  ['format', 'string', 'if the Content-Type does not say it', { enum: ['ndjson', 'csv'] }],
  ['mode', 'string', 'upsert: a line with the identifier of an entity changes it', { enum: ['create', 'upsert'] }],
  ['dryRun', 'boolean', 'only checks the lines'],
  ['atomic', 'boolean', 'keeps nothing if a line is refused'],
] as const

const into = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(streamGuard('entities'))
  .post('/import', ({ ctx, params, request }) => importAll(ctx, params.key, request), {
    can: 'user',
    params: ofBlueprint,
    detail: {
      operationId: 'importEntities',
      summary: 'Import entities from NDJSON or CSV',
      description:
        'A line for each entity, flat, wrapped or as it was exported; a CSV begins with its columns, and an empty cell is ' +
        'no value. Lines that are refused are told, the first 1,000 of them, and left out.',
      parameters: flags.map(parameter),
      requestBody: text('The lines'),
    },
    response: { 200: EntityImportResult, 413: ProblemShape, 415: ProblemShape },
  })

/** Many entities at once: batches, exports and imports. */
export const transferRoutes = new Elysia().use(many).use(out).use(into)
