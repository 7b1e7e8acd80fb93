import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { parseSize } from './core/byte-size'
import { HOUR_MS } from './core/clock'
import { ConfigError } from './core/config-error'
import { readConfigFile } from './core/config-file'
import { findNearestKey } from './core/nearest-key'
import {
  integerSetting,
  listPattern,
  parseFileList,
  SIZE,
  secretSetting,
  sizeSetting,
  textSetting,
  toggleSetting,
} from './core/setting-types'
import { storeSetting } from './core/store-address'
import { isTerminal } from './core/terminal'
import { readTraceExport } from './core/trace-variables'
import { useZoneFolder } from './core/zone-data/current-zones'

/** All settings: their names, valid values, defaults and descriptions. */
export const Settings = Type.Object({
  ATOLL_PORT: integerSetting(3000, 0, 65535, 'port to listen on; 0 picks a free port'),
  ATOLL_HOST: Type.String({
    default: '127.0.0.1',
    minLength: 1,
    description: 'address to listen on; defaults to 127.0.0.1, or 0.0.0.0 with ATOLL_ACME',
  }),
  ATOLL_TLS_CERT: textSetting(
    'PEM files of certificate chains, separated by commas. ATOLL_PORT then serves HTTPS. Changed files are reloaded without a restart.',
  ),
  ATOLL_TLS_KEY: textSetting('PEM files of the private keys, in the order of ATOLL_TLS_CERT'),
  ATOLL_ACME: toggleSetting(
    'off',
    "obtain certificates for tenant hosts from an ACME authority and accept the authority's terms of service. ATOLL_PORT then serves HTTPS.",
  ),
  ATOLL_ACME_EMAIL: Type.String({
    default: '',
    pattern: '^([^\\s@<>,]+@[^\\s@<>,]+)?$',
    expected: 'an address such as admin@example.com',
    description: 'contact address for the ACME authority',
  }),
  ATOLL_ACME_DIRECTORY: Type.String({
    default: 'https://acme-v02.api.letsencrypt.org/directory',
    pattern: '^https://\\S+$',
    expected: 'a URL that starts with https://',
    description: "directory URL of the ACME authority; defaults to Let's Encrypt",
  }),
  ATOLL_ACME_PROFILE: textSetting(
    'certificate profile to request from the ACME authority; defaults to classic where offered',
  ),
  ATOLL_ACME_CA: textSetting('PEM file of CA certificates for a private ACME directory'),
  ATOLL_ACME_EAB_KEY_ID: Type.String({
    default: '',
    pattern: '^\\S*$',
    expected: 'a key ID without spaces',
    description: 'key ID for ACME external account binding',
  }),
  ATOLL_ACME_EAB_HMAC_KEY: Type.String({
    default: '',
    pattern: '^[A-Za-z0-9_+/-]*={0,2}$',
    expected: 'a Base64 key, as shown by the authority',
    secret: true,
    description: 'Base64 HMAC key for ACME external account binding',
  }),
  ATOLL_HTTP_PORT: integerSetting(80, 0, 65535, 'port for ACME challenges and redirects to HTTPS; 0: none'),
  ATOLL_WORKERS: integerSetting(1, 1, 64, 'number of server processes (Linux only)'),
  ATOLL_READER_THREADS: integerSetting(-1, -1, 64, 'threads per process for costly reads; -1 means one per CPU'),
  ATOLL_COLUMN_CACHE: sizeSetting(48 << 20, 0, 1e12, 'memory per process for caching field values; 0 disables it'),
  ATOLL_TENANTS: Type.String({ default: 'tenants', minLength: 1, description: 'data folder' }),
  ATOLL_DEFAULT_TENANT: Type.String({
    default: '',
    pattern: '^([a-z0-9][a-z0-9-]{0,62})?$',
    expected: 'a tenant ID',
    description:
      'tenant that serves hosts without a tenant; defaults to the only tenant, or to the choice of `atoll tenant default`',
  }),
  ATOLL_HOST_CLAIMS: Type.Union([Type.Literal('off'), Type.Literal('dns'), Type.Literal('open')], {
    default: 'off',
    description:
      'how tenants claim website hosts. off: only the operator assigns hosts. dns: a TXT record must prove ownership. open: the first tenant to claim a free host gets it.',
  }),
  ATOLL_DNS_SERVERS: Type.String({
    default: '',
    pattern: listPattern('(\\d+(\\.\\d+){3}(:\\d+)?|\\[[0-9a-fA-F:]+\\](:\\d+)?|[0-9a-fA-F:]+)'),
    expected: 'addresses such as 9.9.9.9, [2620:fe::fe]:53',
    description: "DNS servers for ownership checks; defaults to the system's",
  }),
  ATOLL_PUBLIC_HOSTS: Type.String({
    default: '',
    pattern: listPattern('(\\[[0-9a-fA-F:.]+\\]|[a-zA-Z0-9._-]+)'),
    expected: 'host names such as app.example.com, www.example.com',
    description: 'host names of the installation itself, which tenants cannot claim',
  }),
  ATOLL_TENANT_HEADER: toggleSetting('on', 'allow requests to select the tenant with the "tenant" header'),
  ATOLL_TRUST_PROXY: toggleSetting('off', 'trust X-Forwarded-… headers. Enable only behind your own proxy.'),
  ATOLL_ALLOW_PRIVATE_NETWORK: toggleSetting('off', 'allow outgoing calls to private addresses'),
  ATOLL_SQLITE_DRIVER: Type.Union([Type.Literal('bun:sqlite'), Type.Literal('better-sqlite3')], {
    default: 'bun:sqlite',
    description: 'SQLite driver',
  }),
  ATOLL_SQLITE_VEC: textSetting(
    'path of the sqlite-vec extension (vec0.so) for vector search; slower than the built-in search, but uses no memory',
  ),
  ATOLL_DURABILITY: Type.Union([Type.Literal('full'), Type.Literal('normal')], {
    default: 'full',
    description: 'normal is faster, but a power failure may lose the last writes',
  }),
  ATOLL_RATE_LIMITS: toggleSetting('on', 'rate limit requests, including sign-ins, sign-ups and coupon codes'),
  ATOLL_DATABASE_URL: secretSetting(
    'PostgreSQL database for the registry and new tenants, instead of files: postgres://…',
  ),
  ATOLL_DATABASE_CLUSTERS: secretSetting(
    'additional PostgreSQL databases for tenants: name=postgres://… name=postgres://…',
  ),
  ATOLL_DATABASE_CONNECTIONS: integerSetting(10, 2, 1000, 'maximum connections per PostgreSQL database'),
  ATOLL_OPEN_TENANTS: integerSetting(0, 0, 1_000_000, 'maximum number of open tenants; 0: by the open file limit'),
  ATOLL_LOG_LEVEL: Type.Union(
    (['debug', 'info', 'warn', 'error', 'silent'] as const).map((level) => Type.Literal(level)),
    { default: 'info', description: 'log level. info logs every request, warn only rejections and failures.' },
  ),
  ATOLL_LOG_FORMAT: Type.Union([Type.Literal('json'), Type.Literal('pretty')], {
    default: 'json',
    description: 'log format; defaults to pretty on a terminal, json otherwise',
  }),
  ATOLL_SLOW_QUERY: integerSetting(
    200,
    0,
    HOUR_MS,
    'threshold for logging slow statements and entity lists, in ms; 0 disables it',
  ),
  ATOLL_WRITE_DEADLINE: integerSetting(2000, 50, 60_000, 'maximum duration of a write, in ms'),
  ATOLL_BODY_LIMIT: sizeSetting(1 << 20, 1024, 1 << 30, 'maximum size of a request body'),
  ATOLL_IMPORT_LIMIT: sizeSetting(16 << 20, 1024, 1e12, 'maximum size of an entity import'),
  ATOLL_ACCESS_TOKEN_TTL: integerSetting(900, 10, 86_400, 'lifetime of an access token, in s'),
  ATOLL_HOUSEKEEPING: integerSetting(3600, 0, 86_400, 'interval of the removal of expired data, in s; 0: never'),
  ATOLL_EVENT_RETENTION: integerSetting(90, 1, 36_500, 'retention period of event records, in days'),
  ATOLL_PLUGIN_TIMEOUT: integerSetting(30_000, 100, 600_000, 'time for a plugin to start responding, in ms'),
  ATOLL_LAMBDA_PROCESSES: integerSetting(4, 1, 64, 'maximum number of concurrent lambdas, each in its own process'),
  ATOLL_AI_ECHO: toggleSetting(
    process.env.NODE_ENV === 'production' ? 'off' : 'on',
    'allow integrations to use the built-in AI source "echo"; defaults to on, or off in production',
  ),
  ATOLL_AI_TIMEOUT: integerSetting(60_000, 100, HOUR_MS, 'idle timeout for responses of AI providers, in ms'),
  ATOLL_AI_USAGE_RETENTION: integerSetting(400, 62, 36_500, 'retention period of AI usage records, in days'),
  ATOLL_AI_BODY_LIMIT: sizeSetting(4 << 20, 1024, 1 << 30, 'maximum size of the body of an AI request'),
  ATOLL_UPLOAD_LIMIT: sizeSetting(16 << 20, 1024, 1 << 30, 'maximum size of an upload to a vector store'),
  ATOLL_FILE_LIMIT: sizeSetting(100 << 20, 1024, 1e13, 'maximum size of an uploaded file'),
  ATOLL_SITE_LIMIT: sizeSetting(512 << 20, 1024, 1e13, 'maximum total size of the files of a site'),
  ATOLL_FILES_URL: storeSetting("S3-compatible store for uploaded files; defaults to each tenant's files folder"),
  ATOLL_SMTP_URL: Type.String({
    default: '',
    secret: true,
    pattern: '^(smtps?://\\S+)?$',
    expected: 'a URL such as smtps://user:password@mail.example.com',
    description:
      'SMTP server for outgoing mail: smtps://user:password@host. Without one, mail stays in an outbox that admins can read.',
  }),
  ATOLL_MAIL_FROM: Type.String({
    default: 'Atoll <atoll@localhost>',
    pattern: '^[^\\r\\n]*[^\\s@<>]+@[^\\s@<>]+>?$',
    expected: 'an address such as Atoll <atoll@example.com>',
    description: 'sender of mail: Name <address>. Tenants with a product name use that name instead.',
  }),
  ATOLL_TIME_ZONES: textSetting(
    "folder of compiled time zones, such as /usr/share/zoneinfo; defaults to the built-in or the system's rules, whichever are newer",
  ),
  ATOLL_MIN_FREE: sizeSetting(200 << 20, 0, 1e15, 'free disk space required for the server to report ready'),
  ATOLL_DRAIN: integerSetting(
    0,
    0,
    600,
    'how long a stopping server keeps serving requests while /ready returns 503, in s',
  ),
  ATOLL_BACKUP_TO: textSetting('backup target: a folder, or s3://bucket/prefix'),
  ATOLL_BACKUP_SCHEDULE: Type.String({
    default: '',
    pattern: '^(\\S+( +\\S+){4,5})?$',
    expected: 'a schedule such as 0 3 * * *, which means every day at 03:00 UTC',
    description: 'cron schedule for backups of all tenants, in UTC; without one, backups run only on demand',
  }),
  ATOLL_BACKUP_KEEP: Type.String({
    default: 'daily=7 weekly=4 monthly=12 log=7',
    pattern: '^((daily|weekly|monthly|log)=\\d{1,4}( +(daily|weekly|monthly|log)=\\d{1,4})*|all)$',
    expected: 'numbers such as daily=7 weekly=4 monthly=12 log=7, or all',
    description: 'backup retention: the number of daily, weekly and monthly backups, and of days of log',
  }),
  ATOLL_BACKUP_CONTINUOUS: toggleSetting('off', 'store every write within seconds, for point-in-time restores'),
  ATOLL_BACKUP_PASSPHRASE: secretSetting(
    'passphrase for encrypting backups. Without a passphrase or recipients, backups are not encrypted.',
  ),
  ATOLL_BACKUP_RECIPIENTS: Type.String({
    default: '',
    pattern: listPattern('age1[a-z0-9]+'),
    expected: 'age recipients such as age1…',
    description: 'age recipients to encrypt backups for',
  }),
  ATOLL_URL: Type.String({
    default: '',
    pattern: '^(https?://\\S+)?$',
    expected: 'a URL such as https://example.com',
    description: 'server that remote commands, such as tenant and backup, use instead of local data',
  }),
  ATOLL_TOKEN: secretSetting('operator token of the server in ATOLL_URL'),
  ATOLL_OPERATOR_TOKEN: secretSetting('bearer token for /operator and /metrics'),
  ATOLL_TEST_CLOCK: toggleSetting('off', 'allow the operator to set the clock, for tests'),
  ATOLL_SIGNING_KEY: secretSetting('key that signs access tokens; if unset, generated and stored in secrets.json'),
})

export type SettingName = keyof Static<typeof Settings>
type SettingShape = (typeof Settings.properties)[SettingName]
export type ConfigSource = 'default' | 'environment' | 'atoll.json'

/**
 * Returns the settings of the environment, else of `atoll.json`, else the defaults, and their sources.
 * @throws ConfigError that names the unknown or invalid setting
 */
export function readConfig(environment: Record<string, string | undefined>, file: Record<string, unknown>) {
  const variables = Object.entries(environment).filter(([key, value]) => key.startsWith('ATOLL_') && value)
  const values = Value.Default(Settings, {}) as Record<string, unknown>
  const sources: Record<string, ConfigSource> = {}
  for (const [source, entries] of [
    ['atoll.json', Object.entries(file)],
    ['environment', variables],
  ] as const)
    for (const [key, value] of entries) {
      const shape = Object.hasOwn(Settings.properties, key) && Settings.properties[key as SettingName]
      if (!shape) throw new ConfigError(unknownSettingMessage(key, source))
      const parsed = shape.type === 'integer' ? parseInteger(value, SIZE in shape) : value
      if (!Value.Check(shape, parsed)) throw new ConfigError(invalidSettingMessage(key, value, shape, source))
      values[key] = parsed
      sources[key] = source
    }
  if (values.ATOLL_TEST_CLOCK === 'on' && environment.NODE_ENV === 'production')
    throw new ConfigError('ATOLL_TEST_CLOCK must be off when NODE_ENV is production.')
  if (values.ATOLL_TEST_CLOCK === 'on' && Number(values.ATOLL_WORKERS) > 1)
    throw new ConfigError('ATOLL_TEST_CLOCK requires a single process. Remove ATOLL_WORKERS.')
  const [certificates, keys] = [values.ATOLL_TLS_CERT, values.ATOLL_TLS_KEY].map((list) => parseFileList(`${list}`))
  if (certificates?.length !== keys?.length)
    throw new ConfigError('ATOLL_TLS_CERT and ATOLL_TLS_KEY must name the same number of files.')
  if (!values.ATOLL_ACME_EAB_KEY_ID !== !values.ATOLL_ACME_EAB_HMAC_KEY)
    throw new ConfigError('ATOLL_ACME_EAB_KEY_ID and ATOLL_ACME_EAB_HMAC_KEY must be set together.')
  // An authority has to reach the server from outside.
  if (values.ATOLL_ACME === 'on' && !sources.ATOLL_HOST) values.ATOLL_HOST = '0.0.0.0'
  return { values: values as Static<typeof Settings>, sources: sources as Partial<Record<SettingName, ConfigSource>> }
}

/** Returns a number, also from a text such as 4000 or, for sizes, 200M; anything else unchanged. */
function parseInteger(value: unknown, isSize: boolean): unknown {
  if (isSize) return parseSize(`${value}`) ?? value
  return /^-?\d{1,15}$/.test(`${value}`) ? Number(value) : value
}

const SOURCE_NAMES: Record<Exclude<ConfigSource, 'default'>, string> = {
  environment: 'the environment',
  'atoll.json': 'atoll.json',
}

function unknownSettingMessage(key: string, source: Exclude<ConfigSource, 'default'>) {
  const near = findNearestKey(key, Object.keys(Settings.properties))
  const hint = near ? `Did you mean ${near}?` : '"atoll doctor" lists all settings.'
  return `Unknown setting ${key} in ${SOURCE_NAMES[source]}. ${hint}`
}

function invalidSettingMessage(
  key: string,
  value: unknown,
  shape: SettingShape,
  source: Exclude<ConfigSource, 'default'>,
) {
  const quotedValue = isSecretSetting(key as SettingName) ? '' : ` "${value}"`
  return `Invalid value${quotedValue} for ${key} in ${SOURCE_NAMES[source]}: ${describeSetting(shape)}.`
}

/** Tells whether a setting may contain a password or a key, which is never shown. */
export const isSecretSetting = (name: SettingName) => 'secret' in Settings.properties[name]

function describeSetting(shape: SettingShape): string {
  if ('anyOf' in shape) return `use ${shape.anyOf.map((choice: { const: string }) => choice.const).join(' or ')}`
  if (shape.type === 'integer')
    return `use a whole number from ${shape.minimum} to ${shape.maximum}${SIZE in shape ? ', or a size such as 200M' : ''}`
  return 'expected' in shape ? `use ${shape.expected}` : 'use a non-empty text'
}

/** Which traces are exported, by OpenTelemetry's variables. */
export const traceExport = readTraceExport(process.env)

/** Tells whether this server speaks HTTPS itself. */
export const isTlsServer = () => config.ATOLL_ACME === 'on' || config.ATOLL_TLS_CERT !== ''

/** The environment of this process, for those that it starts. */
export const environment = process.env

/** The settings of this process. No other module reads the environment. */
export const { values: config, sources: configSources } = readConfig(process.env, readConfigFile())

useZoneFolder(config.ATOLL_TIME_ZONES)

/** Whether several processes of this machine serve together. */
export const hasSeveralProcesses = config.ATOLL_WORKERS > 1

/** Whether other processes may serve the same data: those of this machine, or servers on one PostgreSQL. */
export const sharesData = hasSeveralProcesses || config.ATOLL_DATABASE_URL !== ''

const STDERR_FD = 2

/** The format of the log: the chosen one, or else one for people on a terminal. */
export const logFormat =
  configSources.ATOLL_LOG_FORMAT || !isTerminal(STDERR_FD) ? config.ATOLL_LOG_FORMAT : ('pretty' as const)
