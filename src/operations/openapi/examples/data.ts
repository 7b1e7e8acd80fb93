import { created, id, later, otherId, times } from './stand-ins'

const fields = [
  { key: 'title', type: 'string', required: true },
  { key: 'done', type: 'boolean', default: false },
  { key: 'hours', type: 'integer' },
  { key: 'parent', type: 'relation', target: 'todos' },
]
const permission = { operation: 'read', scope: 'user', roleBased: ['user'] }
const blueprint = { key: 'todos', name: 'To-dos', fields, permissions: [permission] }
const savedBlueprint = { _id: id, description: '', ...blueprint, ...times }
const properties = { title: 'Write the notes', done: false }
const entity = { _id: id, identifier: id, ...times, user: id, workspace: null, metadata: properties, ...properties }
const sum = {
  sum: 1280.5,
  groups: [
    { group: '2026-01-30', sum: 480 },
    { group: '2026-01-31', sum: 800.5 },
  ],
}
const tooltip = { trigger: 'item' }
const newComponent = {
  ...{ identifier: 'hello', componentName: 'Hello' },
  content: 'export default ({ name }) => <p>{name}</p>',
}
const component = {
  ...{ _id: id, description: '', ...newComponent, requiredProps: [{ prop: 'name', type: 'string' }], ...times },
  compiledContent: { js: 'export default ({ name }) => React.createElement("p", null, name);\n', css: '' },
}
const block = { name: 'footer', content: '<p>Imprint</p>', contentType: 'html' }
const theme = { accent: 'teal', dark: true }
const configuration = { key: 'theme', public: true, metadata: theme }
const shopSettings = { websiteUrls: ['https://shop.example.com'], timezone: 'Europe/Lisbon' }
const appConfiguration = {
  metadata: { ...shopSettings, name: 'Corner shop' },
  hosts: [{ host: 'shop.example.com', state: 'served' }],
}
const fileUrl = `/api/files/${id}/invoice.pdf`
const deployment = {
  ...{ _id: id, spa: false, files: 42, bytes: 1_250_000, by: id, created, active: true },
  urls: ['https://shop.example.com/'],
}

/** Examples of blueprints, entities, content, files and sites, by the names of their schemas. */
export const dataExamples: Record<string, unknown> = {
  NewBlueprint: blueprint,
  BlueprintChange: { name: 'To-dos', fields },
  Blueprint: savedBlueprint,
  UpdatedBlueprint: savedBlueprint,
  PermissionExplanation: {
    ...{ blueprint: 'todos', user: { _id: id, roles: ['user'] }, workspace: null },
    operations: [
      {
        ...{ operation: 'read', allowed: true, reach: { all: false, user: id, workspace: null } },
        because: 'Rule 1 allows it.',
        rules: [{ index: 0, rule: permission, applies: true, because: 'The user has the role user.' }],
      },
    ],
  },
  FieldIndex: { field: 'title', fields: ['title'], state: 'ready', reason: 'filter', since: created, used: created },
  Entity: entity,
  EntityInput: properties,
  EntityBatch: {
    operations: [
      { op: 'create', data: properties },
      { op: 'delete', identifier: id },
    ],
  },
  EntityBatchResult: {
    results: [
      { op: 'create', identifier: id, status: 201, entity },
      { op: 'delete', identifier: otherId, status: 200 },
    ],
  },
  ListEntitiesResult: [entity],
  EntityDeleted: { success: true, identifier: id },
  EntitiesDeleted: { success: true, deletedCount: 12 },
  EntityImportResult: {
    ...{ imported: 498, failed: 1, errors: [{ line: 17, code: 'INVALID_INPUT', message: 'title is required.' }] },
    understood: { separator: ',', encoding: 'utf-8', columns: ['title', 'done'] },
  },
  'ExportEntitiesResult application/x-ndjson': `${JSON.stringify(entity)}\n`,
  'ExportEntitiesResult text/csv': `identifier,title,done\r\n${id},Write the notes,false\r\n`,
  'StreamEntityChangesResult text/event-stream': `event: create\nid: 7.k3Vt0a\ndata: ${JSON.stringify(entity)}\n\n`,
  'ImportEntitiesInput application/octet-stream':
    '{"title":"Write the notes"}\n{"title":"Water the plants","done":true}\n',
  EntityVersion: {
    ...{ version: 2, action: 'change', at: later, by: id, changes: { done: { from: false, to: true } } },
  },
  Count: { count: 42 },
  EntitySum: sum,
  PieChart: {
    tooltip,
    series: [
      {
        type: 'pie',
        name: 'count',
        data: [
          { name: 'open', value: 12 },
          { name: 'done', value: 30 },
        ],
      },
    ],
  },
  AxesChart: {
    ...{ tooltip, toolbox: { feature: { saveAsImage: {} } }, yAxis: { type: 'value' } },
    xAxis: { type: 'category', data: ['2026-01-30', '2026-01-31'] },
    series: [{ type: 'bar', name: 'count', data: [4, 7] }],
  },

  NewComponent: newComponent,
  ComponentChange: { content: newComponent.content },
  Component: component,
  ComponentBulk: { components: [newComponent] },
  ComponentBulkResult: {
    ...{ total: 1, succeeded: 1, failed: 0, results: [{ identifier: 'hello', success: true, component }] },
  },
  StaticFiles: {
    ...{
      identifier: 'hello',
      js: '/api/static/hello.77e81ccb131528de.js',
      css: '/api/static/hello.77e81ccb131528de.css',
    },
  },
  NewBlock: block,
  BlockChange: { content: block.content },
  Block: { _id: id, description: '', ...block, ...times },
  NewConfiguration: configuration,
  ConfigurationChange: { metadata: theme },
  Configuration: { _id: id, kind: '', description: '', ...configuration, ...times },
  AppConfiguration: appConfiguration,
  AppConfigurationChange: { metadata: shopSettings },

  StoredFile: {
    ...{ _id: id, name: 'invoice.pdf', type: 'application/pdf', size: 48_213, owner: id, workspace: null, created },
    ...{ sha256: '982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1', visibility: 'private' },
    url: fileUrl,
  },
  FileChange: { keep: true },
  FileLink: { token: 'mx16r748.M63V_Zgr…', url: `${fileUrl}?token=mx16r748.M63V_Zgr…`, expires: later },
  Deployment: deployment,
}
