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
        'All or nothing: if one operation is rejected, its error is returned, and the paths in its details begin with `/operations/<number>`.',
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
  ['separator', 'string', 'of CSV: `,`, `;`, `|` or `tab`'],
  [
    'decimal',
    'string',
    'of CSV: `comma` for numbers such as 1,5; not with a comma as separator',
    { enum: ['point', 'comma'] },
  ],
] as const
const csvExportParameters = [
  ...csvParameters,
  ['bom', 'boolean', 'of CSV: begins the file with a byte order mark, by which spreadsheets recognise UTF-8'],
  ['titles', 'boolean', 'of CSV: names the columns by the titles of their fields'],
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
        'texts that a spreadsheet would read as a formula are prefixed with an apostrophe. Only NDJSON supports `$populate`. ' +
        'A field that is called like an option of CSV is filtered by; then `$separator`, `$decimal`, `$bom` and `$titles` are the options.',
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
    'upsert: a line with the identifier of an existing entity updates it',
    { enum: ['create', 'upsert'] },
  ],
  ['dryRun', 'boolean', 'validates the lines without saving'],
  ['atomic', 'boolean', 'saves nothing if a line is rejected'],
  ['timezone', 'string', 'the IANA name of the zone of times that name none; NDJSON has none without it'],
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
        'One line per entity, flat, wrapped or as exported. A CSV starts with a header line, and an empty cell means ' +
        'no value. Without `separator`, its first line tells what separates the cells; `understood` in the answer says it. ' +
        'Rejected lines are skipped, and the first 1,000 of them are reported.',
      parameters: importParameters.map(toParameter),
      requestBody: {
        description:
          'The lines. `Content-Type` says which format they have, `application/x-ndjson` or `text/csv`; with `application/octet-stream`, `format` does.',
        content: { 'application/octet-stream': { schema: { type: 'string' as const, format: 'binary' } } },
      },
    },
    response: { 200: EntityImportResult, 413: ProblemShape, 415: ProblemShape },
  })

/** The routes for many entities at once: batches, exports and imports. */
export const transferRoutes = [batchRoutes, exportRoutes, importRoutes]
