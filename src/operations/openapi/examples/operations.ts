import { created, id, later } from './stand-ins'

const host = 'acme.example.com'
const backup = { created, bytes: 1_048_576, problem: null, failed: null }
const tenant = {
  ...{ id: 'acme', status: 'active', created, hosts: [host], bytes: 11_534_336, lastRequest: later },
  ...{ damage: null, backup, backupOverdue: false },
}
const callers = { reads: 6_000, writes: 3_000, costly: 1_200 }
const guests = { reads: 600, writes: 300, costly: 120 }
const rateLimits = { guests, users: callers }
const token = { _id: id, name: 'nightly', scopes: ['read', 'backups'], created, expires: null, used: null }
const usage = {
  ...{ blueprints: 12, entities: 48_200, users: 412, storage: 73_400_320, files: 318, lambdaSeconds: 42.5 },
  ...{ aiTokens: 23_730, mails: 96 },
}

/** Examples for operators of an installation, by the names of their schemas. */
export const operationExamples: Record<string, unknown> = {
  CheckHealthResult: { status: 'ok' },
  ListTimeZonesResult: ['Africa/Abidjan', 'America/New_York', 'Europe/Lisbon', 'UTC'],
  CheckReadinessResult: { status: 'ready' },
  DescribeServerResult: {
    ...{ name: 'Atoll', api: '/api', documentation: '/openapi', description: '/openapi/json' },
    ...{ health: '/health', readiness: '/ready' },
  },
  'GetMetricsResult text/plain':
    '# TYPE atoll_http_requests_total counter\natoll_http_requests_total{status="200"} 840\n',
  OperatorTenant: tenant,
  NewTenant: { id: 'acme', name: 'Harbor Desk', hosts: [host] },
  CreatedTenant: { ...tenant, setUpLink: `https://${host}/admin/set-up?tenant=acme#gLdaA1hf297As62…` },
  DeletedTenant: { success: true, trash: '/var/lib/atoll/tenants/.trash/acme' },
  TenantHosts: { hosts: [host] },
  DefaultTenantChoice: { mode: 'everywhere', tenant: 'acme' },
  DefaultTenant: { mode: 'everywhere', tenant: 'acme', source: 'operator' },
  SetUpLink: { link: `https://${host}/admin/set-up?tenant=acme#gLdaA1hf297As62…` },
  SupportRequest: { reason: 'Ticket 42: an import fails' },
  SupportLink: { link: `https://${host}/admin/sign-in?tenant=acme#B5SdKpv8bN-MT3bj…` },
  TenantMove: { to: 'postgres' },
  OperatorTask: {
    ...{ _id: id, kind: 'clone', tenant: 'acme', status: 'succeeded', input: { as: 'acme-copy' } },
    ...{ progress: { message: 'copied 48200 rows', fraction: 1 }, problem: null },
    result: {
      ...{ tenant: 'acme-copy', from: 'acme', files: { count: 318, missing: [] }, lostSecrets: 0, omittedSecrets: [] },
      ms: 2_400,
    },
    ...{ created, updated: created, finished: created },
  },
  ListedBackup: {
    ...{ name: '2026-01-31T12-00-00.000Z', place: 's3://backups/acme/2026-01-31T12-00-00.000Z', created },
    ...{ bytes: 1_048_576, version: '0.1.0', schemaVersion: 12, rows: 48_200, encrypted: true },
  },
  OperatorToken: token,
  NewOperatorToken: { name: 'nightly', scopes: ['read', 'backups'] },
  CreatedOperatorToken: { ...token, token: 'atoll_op_5f0c9e3b7a02…' },
  OperatorHomes: {
    ...{ sqlite: { tenants: 12, usable: true }, postgres: { usable: false, clusters: [] } },
    problem: 'Set ATOLL_DATABASE_URL to move tenants to PostgreSQL.',
  },
  OperatorEvent: { _id: id, eventName: 'support-opened', tenant: 'acme', metadata: { reason: 'Ticket 42' }, created },
  TenantClone: { as: 'acme-copy' },
  TenantRestore: { backup: '2026-01-31T12-00-00.000Z', as: 'acme-restored' },
  QuotaChange: { entities: 100_000, storage: 2_147_483_648, mails: null },
  TenantQuotas: {
    ...{ blueprints: 1_000, entities: 100_000, users: null, storage: 2_147_483_648, files: null },
    ...{ lambdaSeconds: null, aiTokens: null, mails: null, usage },
  },
  ChosenRateLimits: { guests: { reads: 5_000 } },
  TenantLimits: { guests: { reads: 5_000 }, defaults: rateLimits },
  OperatorHealth: {
    ...{ status: 'ok', version: '0.1.0', timeZones: { version: '2026a', source: 'built-in' }, engine: 'sqlite' },
    ...{ uptimeSeconds: 86_400, memoryBytes: 188_743_680 },
    disk: { freeBytes: 53_687_091_200, totalBytes: 107_374_182_400 },
    tenants: { total: 12, suspended: 0, maxOpen: 500 },
    requests: { total: 840, errors: 0, p95Seconds: 0.021 },
    ...{ jobs: { waiting: 2, failing: 0 }, damaged: [] },
    checks: [{ check: 'disk', ok: true, message: '50 GiB are free.' }],
  },
  OperatorSetting: {
    ...{ name: 'ATOLL_PORT', value: 3000, source: 'default', description: 'port on which the server listens' },
  },
  LogLine: { level: 'info', time: created, text: '{"level":"info","message":"The server listens."}' },
  Certificate: {
    ...{ host, tenant: 'acme', source: 'acme', state: 'issued', issuer: 'Let’s Encrypt', issued: created },
    ...{ expires: '2026-05-01T12:00:00.000Z', attempted: created, next: '2026-04-01T12:00:00.000Z' },
    ...{ failures: 0, problem: null },
  },
  FailingJob: {
    ...{ _id: id, kind: 'mail', subject: null, attempts: 3, error: 'The mail server refused the connection.' },
    ...{ waiting: 0, nextAttempt: later, created },
  },
  Installation: {
    ...{ version: '0.1.0', hosts: [host], hostClaims: 'off', sessionDays: 30, accessTokenSeconds: 900 },
    mail: { isSent: true, from: 'Acme <no-reply@acme.example.com>' },
    ...{ eventDays: 90, rateLimits, outgoingHeld: false, databaseBytes: 11_534_336 },
  },
}
