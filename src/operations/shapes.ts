import { type Static, type TSchema, t } from 'elysia'
import { ClonedTenant, LastBackup, RestoredTenant, TenantBackup, TenantClone, TenantRestore } from '../backups/shapes'
import { id, jsonObject, time, withMessage } from '../core/shapes'
import { ChosenRateLimits, RateLimits } from '../limits/shapes'
import { listQuery } from '../storage/pagination'
import type { TaskKindName } from './tasks'

/** What the operator decided for a tenant, and what the tenant takes. */
export const Installation = t.Object({
  version: t.String(),
  hosts: t.Array(t.String(), { description: 'hosts that the operator assigned to the tenant' }),
  hostClaims: t.Union([t.Literal('off'), t.Literal('dns'), t.Literal('open')], {
    description: 'how the tenant claims website hosts (ATOLL_HOST_CLAIMS)',
  }),
  mail: t.Object({
    isSent: t.Boolean({ description: 'whether a mail server is configured; without one, mail stays in the outbox' }),
    from: t.String({ description: 'sender of mail' }),
  }),
  sessionDays: t.Number({ description: 'lifetime of an unused session, in days' }),
  accessTokenSeconds: t.Number({ description: 'lifetime of an access token, in seconds' }),
  eventDays: t.Number({ description: 'retention period of events, in days' }),
  rateLimits: t.Nullable(RateLimits, { description: 'rate limits per caller; null if ATOLL_RATE_LIMITS is off' }),
  databaseBytes: t.Nullable(t.Number({ description: 'size of the tenant database; null in PostgreSQL' })),
  outgoingHeld: t.Boolean({ description: 'whether outgoing calls are blocked, because the tenant is a copy' }),
})
export type Installation = Static<typeof Installation>

const host = t.String({ minLength: 1, maxLength: 300 })

/** A tenant as the operator sees it. */
export const OperatorTenant = t.Object({
  id: t.String(),
  status: t.Union([t.Literal('active'), t.Literal('suspended')]),
  created: time,
  hosts: t.Array(t.String()),
  home: t.Optional(t.String({ description: 'cluster/bucket in PostgreSQL; omitted for files' })),
  moved: t.Optional(time),
  outgoingHeld: t.Optional({
    ...time,
    description: 'start of the block on outgoing calls, because the tenant is a copy',
  }),
  bytes: t.Nullable(t.Number({ description: 'size of its files; null in PostgreSQL' })),
  lastRequest: t.Nullable({ ...time, description: 'last request since this server started' }),
  damage: t.Nullable(t.String({ description: 'database damage that this server found within a day' })),
  backup: t.Nullable(LastBackup, { description: 'last backup; null if none was attempted' }),
  backupOverdue: t.Boolean({
    description:
      'whether ATOLL_BACKUP_SCHEDULE is set, and its last backup is older than two days and than the last run but one',
  }),
})
export type OperatorTenant = Static<typeof OperatorTenant>

/** Which tenant answers where neither a header nor a host names one. */
export const DefaultTenantChoice = t.Object({
  mode: t.Union([t.Literal('everywhere'), t.Literal('local'), t.Literal('none')], {
    description:
      'scope of the default tenant: all hosts without a tenant, localhost and IP addresses only, or none; `local` without a tenant means the first tenant',
  }),
  tenant: t.Optional(t.Nullable(t.String({ maxLength: 63, description: 'tenant ID' }))),
})

export const DefaultTenant = t.Object({
  mode: DefaultTenantChoice.properties.mode,
  tenant: t.Nullable(t.String({ description: 'tenant ID; null if there is no default tenant' })),
  source: t.Union([t.Literal('setting'), t.Literal('operator'), t.Literal('only'), t.Literal('first')], {
    description: 'origin: ATOLL_DEFAULT_TENANT, a choice of the operator, the only tenant, or the first of several',
  }),
})

/** A new tenant, with the first administrator where they are known. */
export const NewTenant = t.Object({
  id: t.String({ maxLength: 63, description: 'lower-case letters, digits and hyphens' }),
  hosts: t.Optional(t.Array(host, { maxItems: 100 })),
  name: t.Optional(t.String({ minLength: 1, maxLength: 60, description: 'product name, shown in mails and pages' })),
  admin: t.Optional(
    t.Object({
      username: t.String({ minLength: 1, maxLength: 128 }),
      password: t.String({ maxLength: 1_000 }),
      email: t.Optional(t.String({ maxLength: 254 })),
    }),
  ),
})
export type NewTenant = Static<typeof NewTenant>

const link = t.String({ description: 'URL of the admin page' })

export const CreatedTenant = t.Composite([
  OperatorTenant,
  t.Object({ setUpLink: t.Nullable(link) }, { description: 'null if the administrator already exists' }),
])
export const SetUpLink = t.Object({ link: t.Nullable(link) })
export const SupportRequest = t.Object({
  reason: t.String({ minLength: 1, maxLength: 500, description: 'reason, which admins of the tenant can see' }),
})
export const SupportLink = t.Object({ link })
export const DeletedTenant = t.Object({
  success: t.Literal(true),
  trash: t.Nullable(t.String({ description: 'new location of the files; null in PostgreSQL' })),
})
export const TenantHosts = t.Object({ hosts: t.Array(host, { maxItems: 1_000 }) })

/** The rate limits that the operator has set for a tenant, and those that apply to the others. */
export const TenantLimits = t.Composite([ChosenRateLimits, t.Object({ defaults: RateLimits })])

/** What the operator or the command line did with a tenant. */
export const OperatorEvent = t.Object({
  _id: id,
  eventName: t.String(),
  tenant: t.String(),
  metadata: jsonObject,
  created: time,
})

/** What tokens of the operator can allow. */
export const OPERATOR_SCOPES = ['read', 'tenants', 'hosts', 'backups', 'moves', 'support'] as const
export type OperatorScope = (typeof OPERATOR_SCOPES)[number]
const operatorScope = t.Unsafe<OperatorScope>(
  t.Union(
    OPERATOR_SCOPES.map((scope) => t.Literal(scope)),
    {
      description:
        'read: all requests with GET but the list of tokens; tenants: create, suspend, delete, limit; hosts: also certificates; backups: make, restore, copy; moves; support: act as an administrator of a tenant',
    },
  ),
)
const tokenName = t.String({
  ...{ minLength: 1, maxLength: 100, pattern: '^[A-Za-z0-9][A-Za-z0-9._ -]*$' },
  ...withMessage('Write the name with letters, digits, blanks, dots, underscores and hyphens.'),
})

/** A token of the operator, which allows a part of what that of the settings does. */
export const OperatorToken = t.Object({
  _id: id,
  name: tokenName,
  scopes: t.Array(operatorScope),
  created: time,
  expires: t.Nullable(time),
  used: t.Nullable({ ...time, description: 'time of last use, to the minute' }),
})
export type OperatorToken = Static<typeof OperatorToken>
export const NewOperatorToken = t.Object({
  name: tokenName,
  scopes: t.Array(operatorScope, { minItems: 1, maxItems: 6 }),
  expires: t.Optional(t.Nullable(time)),
})
export type NewOperatorToken = Static<typeof NewOperatorToken>
export const CreatedOperatorToken = t.Composite([
  OperatorToken,
  t.Object({ token: t.String({ description: 'shown only once' }) }),
])
export type CreatedOperatorToken = Static<typeof CreatedOperatorToken>

const home = t.String({
  minLength: 1,
  maxLength: 200,
  description: 'sqlite, postgres (the emptiest bucket), or cluster/bucket',
})

/** Where a tenant is to be moved. */
export const TenantMove = t.Object({ to: home })

export const MovedTenant = t.Object({
  id: t.String({ description: 'tenant ID' }),
  from: t.String(),
  to: t.String(),
  rows: t.Number({ description: '0 if the tenant was already at this home' }),
  waited: t.Number({ description: 'duration of the pause of writes in the last step (ms)' }),
  ms: t.Number({ description: 'duration of the move (ms)' }),
  trash: t.Optional(t.String({ description: 'new location of the old files' })),
})

export const TaskProgress = t.Object({
  message: t.String({ description: 'latest progress message' }),
  fraction: t.Nullable(t.Number({ description: 'progress from 0 to 1; null if unknown' })),
})
export const TaskProblem = t.Object({ code: t.String(), message: t.String() })

const taskOf = <Kind extends TaskKindName, Input extends TSchema, Result extends TSchema>(
  kind: Kind,
  input: Input,
  result: Result,
) =>
  t.Object({
    _id: id,
    kind: t.Literal(kind),
    tenant: t.String(),
    status: t.Union([t.Literal('running'), t.Literal('succeeded'), t.Literal('failed'), t.Literal('interrupted')], {
      description: 'interrupted: the server stopped while running the task; `problem` tells how to finish the task',
    }),
    input,
    progress: t.Nullable(TaskProgress),
    result: t.Nullable(result),
    problem: t.Nullable(TaskProblem),
    created: time,
    updated: time,
    finished: t.Nullable(time),
  })

/** Long work that the operator started. */
export const OperatorTask = t.Union([
  taskOf('move', TenantMove, MovedTenant),
  taskOf('backup', t.Object({}), TenantBackup),
  taskOf('restore', TenantRestore, RestoredTenant),
  taskOf('clone', TenantClone, ClonedTenant),
])
export type OperatorTask = Static<typeof OperatorTask>

const tenantCount = t.Number({ description: 'number of tenants' })
const usable = t.Boolean({ description: 'whether tenants can be moved to this home' })

/** Where tenants can be. */
export const OperatorHomes = t.Object({
  sqlite: t.Object({ tenants: tenantCount, usable }),
  postgres: t.Object({
    usable,
    clusters: t.Array(
      t.Object({
        name: t.String(),
        usable,
        problem: t.Nullable(t.String({ description: 'reason why the cluster is unusable' })),
        buckets: t.Array(t.Object({ home: t.String({ description: 'cluster/bucket' }), tenants: tenantCount })),
      }),
    ),
  }),
  problem: t.Nullable(
    t.String({ description: 'reason why tenants cannot be moved, and the setting that enables moves' }),
  ),
})
export type OperatorHomes = Static<typeof OperatorHomes>

const Check = t.Object({ check: t.String(), ok: t.Boolean(), message: t.String() })

/** How the installation is. */
export const OperatorHealth = t.Object({
  status: t.Union([t.Literal('ok'), t.Literal('problem')]),
  version: t.String(),
  timeZones: t.Object(
    { version: t.String(), source: t.String({ description: '`built-in`, or the folder of the rules' }) },
    { description: 'release of the IANA time zone database in use' },
  ),
  engine: t.Union([t.Literal('sqlite'), t.Literal('postgres')]),
  uptimeSeconds: t.Number(),
  memoryBytes: t.Number(),
  disk: t.Nullable(t.Object({ freeBytes: t.Number(), totalBytes: t.Number() })),
  tenants: t.Object({ total: t.Number(), suspended: t.Number(), maxOpen: t.Number() }),
  requests: t.Object(
    {
      total: t.Number(),
      errors: t.Number({ description: '5xx responses' }),
      p95Seconds: t.Nullable(t.Number({ description: '95th percentile latency in seconds; null if unknown' })),
    },
    { description: 'requests to this server in the last full minute' },
  ),
  jobs: t.Object(
    { waiting: t.Number(), failing: t.Number() },
    { description: 'jobs of tenants with requests to this server within an hour; failing jobs are retried' },
  ),
  damaged: t.Array(t.Object({ tenant: t.String(), reason: t.String(), time })),
  checks: t.Array(Check),
})
export type OperatorHealth = Static<typeof OperatorHealth>

/** A setting of the installation. */
export const OperatorSetting = t.Object({
  name: t.String(),
  value: t.Union([t.String(), t.Number()], { description: '(given) for secrets' }),
  source: t.Union([t.Literal('default'), t.Literal('environment'), t.Literal('atoll.json')]),
  description: t.String(),
})

export const LogQuery = t.Object({
  level: t.Optional(t.Union([t.Literal('debug'), t.Literal('info'), t.Literal('warn'), t.Literal('error')])),
  q: t.Optional(t.String({ maxLength: 200, description: 'text contained in the lines' })),
  limit: listQuery.limit,
})
export const LogLine = t.Object({ level: t.String(), time, text: t.String({ description: 'log line as JSON' }) })
