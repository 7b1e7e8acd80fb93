import { created, id, later, otherId, times } from './stand-ins'

const event = {
  ...{ source: 'shop', kind: 'order', eventName: 'order-placed', description: 'An order' },
  metadata: { total: 5 },
}
const code = 'export default async (request, atoll) => ({ hello: request.query.name })'
const newLambda = { name: 'Greeting', code, timeoutMs: 1000 }
const lambda = {
  ...{ _id: id, description: '', ...newLambda, memoryMb: 64, env: ['shopToken'], serviceRole: null },
  ...{ version: 1, ...times },
}
const logLine = { at: 3, level: 'info', text: 'greeted Ada' }
const target = { kind: 'lambda', lambdaId: id }
const newIntegration = { name: 'Greet', trigger: { kind: 'webhook' }, target }
const integration = {
  ...{ _id: id, ...newIntegration, active: true, guest: false, roles: [], workspaceRoles: [], plugin: null },
  ...{ user: id, ...times },
}
const source = { name: 'Model server', kind: 'openai', metadata: { apiUrl: 'https://api.openai.com/v1' } }
const authentication = { token: 'sk-proj-abc123' }
const newPlugin = { name: 'Mailer', subscribedEvents: [{ kind: 'order', hookUrl: 'https://mailer.example.com/hook' }] }
const plugin = {
  ...{ _id: id, name: 'Mailer', description: '', manifestUrl: null, apiPath: null, proxyUrl: null, active: true },
  subscribedEvents: [
    { source: '*', kind: 'order', eventName: '*', hookUrl: 'https://mailer.example.com/hook', active: true },
  ],
  health: { status: 'ok', lastError: null, lastErrorAt: null, lastSuccessAt: created },
  ...times,
}
const secret = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='
const lambdaFiles = { 'lambdas/greeting.ts': 'export default () => "Hello"' }
const change = { action: 'create', kind: 'lambda', name: 'greeting' }

/** Examples of events, lambdas, integrations, plugins and definitions, by the names of their schemas. */
export const automationExamples: Record<string, unknown> = {
  NewEvent: event,
  Event: { _id: id, ...event, user: id, workspace: null, created },
  FilterOptions: {
    kinds: ['order', 'user'],
    eventNames: ['order-placed', 'user-created'],
    sources: ['accounts', 'shop'],
  },
  ListKnownEventsResultItem: { source: 'accounts', kind: 'user', eventName: 'user-registered' },
  EventCount: { count: 42, groups: [{ group: '2026-01-31', count: 42 }] },
  EventSum: { sum: 1280.5, groups: [{ group: '2026-01-31', sum: 1280.5, count: 42 }] },

  NewLambda: newLambda,
  LambdaChange: { code },
  Lambda: lambda,
  LambdaVersion: { version: 1, code, user: id, created },
  LambdaRollback: { version: 1 },
  LambdaInput: { query: { name: 'Ada' } },
  LambdaExecution: { result: { hello: 'Ada' }, logs: [logLine], durationMs: 4 },
  LambdaRun: {
    ...{ _id: id, version: 1, trigger: 'webhook', status: 200, error: null, started: created, duration: 4, user: id },
    logs: [logLine],
  },
  LambdaRunSummary: { lambda: id, runs: 120, failures: 2, lastRun: later, lastFailure: created },

  NewIntegrationSource: { ...source, authentication },
  IntegrationSourceChange: { name: 'Model server' },
  IntegrationSourceDraft: { kind: source.kind, metadata: source.metadata, authentication },
  IntegrationSource: { _id: id, ...source, labels: [], secrets: ['token'], ...times },
  IntegrationSourceStatus: { status: 'connected', message: 'The server answered.', checkedAt: created },
  NewIntegration: newIntegration,
  IntegrationChange: { active: false },
  Integration: integration,
  IntegrationRun: {
    ...{ _id: id, trigger: 'event', event: otherId, due: null, state: 'dead', attempts: 8 },
    ...{ outcome: { code: 'BLUEPRINT_NOT_FOUND', message: 'There is no such blueprint.' }, nextAttempt: null },
    ...{ created, finished: later },
  },
  DueTimes: { times: [{ due: '2026-02-01T08:00:00.000Z', local: '2026-02-01T09:00:00+01:00' }] },

  NewPlugin: newPlugin,
  PluginChange: { description: 'Sends an e-mail for each order' },
  Plugin: plugin,
  CreatedPlugin: { ...plugin, secret },
  PluginSecretRotation: { secret },
  PluginSecret: { secret, formerUntil: '2026-02-01T12:00:00.000Z' },
  PluginToken: { token: 'atl_5f0c9e3b7a02…', user: otherId },
  PluginDelivery: {
    ...{ _id: id, event: otherId, source: 'shop', kind: 'order', eventName: 'order-placed', state: 'delivered' },
    ...{ hookUrl: 'https://mailer.example.com/hook', attempts: 1, status: 204, durationMs: 87, answer: '' },
    ...{ error: null, nextAttempt: null, ...times },
  },

  DefinitionDiff: { files: lambdaFiles },
  DefinitionPush: { files: lambdaFiles },
  Definitions: { files: lambdaFiles, versions: { 'lambdas/greeting.ts': 'k3Vt0a' } },
  DefinitionDiffResult: { changes: [change], missingSecrets: [], keptSecrets: [] },
  DefinitionPushResult: { changes: [change], versions: { 'lambdas/greeting.ts': 'k3Vt0a' }, remaining: 0 },
}
