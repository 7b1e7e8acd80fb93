import { Elysia } from 'elysia'
import { guard, streamGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { blueprintParams, filterParameters, jsonContent, shapeParameters, toParameter } from '../parameters'
import { EntityBatch, EntityBatchResult, EntityImportResult } from '../shapes'
import { batch } from './batch'
import { exportAll } from './export'
import { importAll } from './import-all'

const batchRoutes = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(guard('entities'))
  .post('/batch', ({ ctx, params, body, request }) => batch(ctx, params.key, body, request), {
    anyone: true,
    params: blueprintParams,
    detail: {
      operationId: 'batchEntities',
      summary: 'Write up to 1,000 entities in one transaction',
      description:
        'All or nothing: if an operation is rejected, its error is returned, with paths that start with `/operations/<number>`.',
      requestBody: jsonContent(EntityBatch, 'Up to 1,000 operations'),
      responses: {
        200: jsonContent(EntityBatchResult, 'The result of each operation'),
        409: jsonContent(ProblemShape, 'One of the operations was rejected'),
      },
    },
  })

const linesContent = (description: string) => ({
  description,
  content: Object.fromEntries(
    ['application/x-ndjson', 'text/csv'].map((type) => [type, { schema: { type: 'string' as const } }]),
  ),
})
const formatParameter = ['format', 'string', 'default: ndjson', { enum: ['ndjson', 'csv'] }] as const

const csvParameters = [
  ['separator', 'string', 'CSV separator: `,`, `;`, `|` or `tab`'],
  [
    'decimal',
    'string',
    'CSV: `comma` for numbers such as 1,5; not with a comma as separator',
    { enum: ['point', 'comma'] },
  ],
] as const
const csvExportParameters = [
  ...csvParameters,
  ['bom', 'boolean', 'CSV: starts the file with a byte order mark, so that spreadsheets recognise UTF-8'],
  ['titles', 'boolean', 'CSV: uses field titles as column names'],
] as const

const exportRoutes = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(guard('entities'))
  .get('/export', ({ ctx, params, request }) => exportAll(ctx, params.key, request), {
    anyone: true,
    costly: true,
    params: blueprintParams,
    detail: {
      operationId: 'exportEntities',
      summary: 'Export entities as NDJSON or CSV',
      description:
        'Exports all matching entities, oldest first. Takes the filters of the list. In CSV, lists and objects are JSON, and ' +
        'an apostrophe precedes texts that a spreadsheet would read as a formula. Only NDJSON supports `$populate`. ' +
        'If a field has the name of a CSV option, the name is a filter. Use `$separator`, `$decimal`, `$bom` and `$titles` for the options.',
      parameters: [
        formatParameter,
        ...csvExportParameters,
        ...filterParameters.filter(([name]) => name === '$select' || name === '$timezone'),
        ...shapeParameters,
      ].map(toParameter),
      responses: { 200: linesContent('One line per entity') },
    },
  })

const importParameters = [
  ['format', 'string', 'overrides the Content-Type', { enum: ['ndjson', 'csv'] }],
  [
    'mode',
    'string',
    'upsert: lines with the identifier of an existing entity update the entity',
    { enum: ['create', 'upsert'] },
  ],
  ['dryRun', 'boolean', 'validates lines without saving them'],
  ['atomic', 'boolean', 'saves nothing if any line is rejected'],
  ['timezone', 'string', 'IANA time zone for times without one; NDJSON has no default'],
  ...csvParameters,
] as const

const importRoutes = new Elysia({ prefix: '/blueprints/:key/entities', tags: ['entities'] })
  .use(streamGuard('entities'))
  .post('/import', ({ ctx, params, request }) => importAll(ctx, params.key, request), {
    can: 'user',
    costly: true,
    params: blueprintParams,
    detail: {
      operationId: 'importEntities',
      summary: 'Import entities from NDJSON or CSV',
      description:
        'One line per entity, flat, wrapped or as exported. A CSV file starts with a header line, and an empty cell means ' +
        'no value. Without `separator`, the separator is detected from the first line; `understood` in the response reports it. ' +
        'Rejected lines are skipped, and the first 1,000 of them are reported.',
      parameters: importParameters.map(toParameter),
      requestBody: {
        description:
          'The lines. `Content-Type` sets their format: `application/x-ndjson` or `text/csv`. With `application/octet-stream`, set `format`.',
        content: { 'application/octet-stream': { schema: { type: 'string' as const, format: 'binary' } } },
      },
    },
    response: { 200: EntityImportResult, 413: ProblemShape, 415: ProblemShape },
  })

/** The routes for many entities at once: batches, exports and imports. */
export const transferRoutes = [batchRoutes, exportRoutes, importRoutes]
