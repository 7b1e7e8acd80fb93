import { id } from './stand-ins'

/** Examples of parameters in paths, by name. All others whose name ends in `id` are ids. */
const PATH_EXAMPLES: Record<string, string> = {
  file: 'hello.77e81ccb131528de.js',
  host: 'acme.example.com',
  identifier: id,
  key: 'todos',
  model: 'Librarian',
  name: 'verification',
  provider: 'google',
  providerKind: 'stripe',
  version: '1',
}

/** Examples of other parameters, by name. Flags, numbers and choices need none. */
const EXAMPLES: Record<string, string> = {
  $after: 'eyJ0IjoxNz…',
  $asOf: '2026-01-31T12:00:00.000Z',
  $outerPopulate: 'subtasks:todos:user',
  $populate: 'parent',
  $q: 'notes',
  $qProps: 'title',
  $select: 'title,done',
  $sort: '-created',
  $timezone: 'Europe/Lisbon',
  billableEntityType: 'user',
  cron: '0 9 * * 1-5',
  download: 'true',
  eventName: 'order-placed',
  force: 'true',
  from: '2026-01-01',
  keep: 'true',
  kind: 'order',
  labels: 'customer',
  lastEventId: '7.k3Vt0a…',
  messages: '[{"role":"user","content":"What is left to do?"}]',
  model: 'gpt-4o-mini',
  name: 'invoice.pdf',
  owner: id,
  providerKind: 'stripe',
  q: 'ada',
  returnUrl: 'https://app.example.com/profile',
  roles: 'editor',
  rt: 'k3Vt…',
  search: 'order',
  select: '_id,name',
  separator: ';',
  sort: '-created',
  source: 'shop',
  state: 'cart-42',
  status: 'active',
  sum: 'hours',
  tenant: 'acme',
  thumb: '100x100',
  timezone: 'Europe/Lisbon',
  to: '2026-01-31',
  token: 'mx16r748.M63V_Zgr…',
  trigger: 'webhook',
  type: 'application/pdf',
  username: 'ada',
  x: 'created',
  'members.user': id,
  'target.kind': 'lambda',
  'trigger.kind': 'webhook',
  'x-encrypted-id': 'tax',
}

/** Examples that only fit one operation. */
const EXAMPLES_BY_OPERATION: Record<string, string> = {
  'deleteConfiguration key': 'theme',
  'deleteMatchingEntities confirm': 'todos',
  'deleteTenant confirm': 'acme',
  'downloadFile name': 'invoice.pdf',
  'getConfiguration key': 'theme',
  'listAiUsage groupBy': 'day,model',
  'listAiUsage kind': 'completion',
  'listAiUsage source': 'echo',
  'listAiUsage status': 'completed',
  'listBlocks name': 'footer',
  'listIntegrations kind': 'webhook',
  'listIntegrations source': 'event',
  'listLambdaLogs sort': '-started',
  'listInvoices status': 'paid',
  'listLambdaLogs status': '500',
  'listLogLines q': 'ready',
  'listMails to': 'ada@example.com',
  'listProviderEvents status': 'failed',
  'listProviderEvents type': 'invoice.paid',
  'listTasks kind': 'backup',
  'listTenants q': 'acme',
  'listAllWorkspaces name': 'Engines',
  'listAllWorkspaces q': 'engines',
  'patchConfiguration key': 'theme',
  'restoreTenant confirm': 'acme',
  'rollbackSite to': id,
  'sumEntities groupBy': 'title',
  'sumEvents sum': 'total',
  'updateConfiguration key': 'theme',
}

type Described = {
  name: string
  in: string
  schema?: { enum?: unknown[]; type?: unknown; const?: unknown; default?: unknown; $ref?: string }
}

/** Returns the example of a parameter; undefined when there is none. */
export function exampleOfParameter(parameter: Described, operationId: string, path: string): unknown {
  const { name, in: place, schema = {} } = parameter
  const ofOperation = EXAMPLES_BY_OPERATION[`${operationId} ${name}`]
  if (ofOperation) return ofOperation
  if (schema.enum) return schema.enum[0]
  if (schema.const !== undefined) return schema.const
  if (schema.type === 'boolean' || schema.$ref) return true
  if (schema.type === 'integer') return /limit$/.test(name) ? 20 : (schema.default ?? 1)
  if (place === 'path' && name === 'id' && path.startsWith('/operator/tenants')) return 'acme'
  if (place === 'path' && name in PATH_EXAMPLES) return PATH_EXAMPLES[name]
  return EXAMPLES[name] ?? (/id$|^(user|workspace|integration|thread|plugin|event)$/i.test(name) ? id : undefined)
}
