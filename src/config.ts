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
  ATOLL_PORT: integerSetting(3000, 0, 65535, 'the port to listen on; 0 takes any free one'),
  ATOLL_HOST: Type.String({
    default: '127.0.0.1',
    minLength: 1,
    description: 'the address to listen on; default: 127.0.0.1, with ATOLL_ACME 0.0.0.0',
  }),
  ATOLL_TLS_CERT: textSetting(
    'PEM files of certificates with their chains, separated by commas; ATOLL_PORT then speaks HTTPS, and takes changed files without a restart',
  ),
  ATOLL_TLS_KEY: textSetting('the PEM files of their private keys, in the same order'),
  ATOLL_ACME: toggleSetting(
    'off',
    'whether to get certificates for the hosts of tenants from an ACME authority, which accepts its terms of service; ATOLL_PORT then speaks HTTPS',
  ),
  ATOLL_ACME_EMAIL: Type.String({
    default: '',
    pattern: '^([^\\s@<>,]+@[^\\s@<>,]+)?$',
    expected: 'an address such as admin@example.com',
    description: 'where the ACME authority may write to',
  }),
  ATOLL_ACME_DIRECTORY: Type.String({
    default: 'https://acme-v02.api.letsencrypt.org/directory',
    pattern: '^https://\\S+$',
    expected: 'an address that begins with https://',
    description: "the directory of the ACME authority; default: that of Let's Encrypt",
  }),
  ATOLL_ACME_PROFILE: textSetting(
    'the profile of certificates to order, of those that the ACME authority offers; default: classic, where it offers that',
  ),
  ATOLL_ACME_CA: textSetting('a PEM file with the certificates that sign that of a private ACME directory'),
  ATOLL_ACME_EAB_KEY_ID: Type.String({
    default: '',
    pattern: '^\\S*$',
    expected: 'the key id without blanks',
    description: 'the key id of the account that an ACME authority gave you (external account binding)',
  }),
  ATOLL_ACME_EAB_HMAC_KEY: Type.String({
    default: '',
    pattern: '^[A-Za-z0-9_+/-]*={0,2}$',
    expected: 'the key in Base64, as the authority shows it',
    secret: true,
    description: 'the HMAC key of that account, in Base64',
  }),
  ATOLL_HTTP_PORT: integerSetting(
    80,
    0,
    65535,
    'the port for plain HTTP beside HTTPS, which answers ACME challenges and redirects; 0: none',
  ),
  ATOLL_WORKERS: integerSetting(1, 1, 64, 'how many processes serve requests together, on Linux'),
  ATOLL_READER_THREADS: integerSetting(-1, -1, 64, 'threads of a process for costly reads; -1: one for each processor'),
  ATOLL_COLUMN_CACHE: sizeSetting(48 << 20, 0, 1e12, 'memory of a process for values that answer lists; 0: none'),
  ATOLL_TENANTS: Type.String({ default: 'tenants', minLength: 1, description: 'the folder of all data' }),
  ATOLL_DEFAULT_TENANT: Type.String({
    default: '',
    pattern: '^([a-z0-9][a-z0-9-]{0,62})?$',
    expected: 'the id of a tenant',
    description:
      'the tenant used at every host of no tenant; default: the only tenant, or what `atoll tenant default` says',
  }),
  ATOLL_HOST_CLAIMS: Type.Union([Type.Literal('off'), Type.Literal('dns'), Type.Literal('open')], {
    default: 'off',
    description:
      'how tenants get the hosts of their websites: off: only from the operator; dns: by a TXT record that proves ownership; open: the first tenant that claims a free host gets it',
  }),
  ATOLL_DNS_SERVERS: Type.String({
    default: '',
    pattern: listPattern('(\\d+(\\.\\d+){3}(:\\d+)?|\\[[0-9a-fA-F:]+\\](:\\d+)?|[0-9a-fA-F:]+)'),
    expected: 'addresses such as 9.9.9.9, [2620:fe::fe]:53',
    description: 'the DNS servers to query for proofs of ownership, instead of those of the system',
  }),
  ATOLL_PUBLIC_HOSTS: Type.String({
    default: '',
    pattern: listPattern('(\\[[0-9a-fA-F:.]+\\]|[a-zA-Z0-9._-]+)'),
    expected: 'host names such as app.example.com, www.example.com',
    description: "this installation's own host names, which no tenant can claim",
  }),
  ATOLL_TENANT_HEADER: toggleSetting('on', 'whether the header "tenant" may name the tenant'),
  ATOLL_TRUST_PROXY: toggleSetting('off', 'whether to trust X-Forwarded-… headers, because your own proxy sets them'),
  ATOLL_ALLOW_PRIVATE_NETWORK: toggleSetting('off', 'whether outgoing calls may reach private addresses'),
  ATOLL_SQLITE_DRIVER: Type.Union([Type.Literal('bun:sqlite'), Type.Literal('better-sqlite3')], {
    default: 'bun:sqlite',
    description: 'the library that reads and writes SQLite files',
  }),
  ATOLL_SQLITE_VEC: textSetting(
    'path of the sqlite-vec extension (vec0.so) for vector search: slower than the built-in search, but uses no memory',
  ),
  ATOLL_DURABILITY: Type.Union([Type.Literal('full'), Type.Literal('normal')], {
    default: 'full',
    description: 'normal: faster, but a power cut may undo the last writes',
  }),
  ATOLL_RATE_LIMITS: toggleSetting('on', 'whether requests are rate limited, also sign-ins, sign-ups and coupon codes'),
  ATOLL_DATABASE_URL: secretSetting(
    'a PostgreSQL database for the registry and new tenants, instead of files: postgres://…',
  ),
  ATOLL_DATABASE_CLUSTERS: secretSetting(
    'further PostgreSQL databases for tenants: name=postgres://… name=postgres://…',
  ),
  ATOLL_DATABASE_CONNECTIONS: integerSetting(10, 2, 1000, 'how many connections to each PostgreSQL database at most'),
  ATOLL_OPEN_TENANTS: integerSetting(
    0,
    0,
    1_000_000,
    'how many tenants stay open at once; 0 derives it from the open files allowed',
  ),
  ATOLL_LOG_LEVEL: Type.Union(
    (['debug', 'info', 'warn', 'error', 'silent'] as const).map((level) => Type.Literal(level)),
    { default: 'info', description: 'the log level: info logs each request, warn only rejections and failures' },
  ),
  ATOLL_LOG_FORMAT: Type.Union([Type.Literal('json'), Type.Literal('pretty')], {
    default: 'json',
    description: 'how the log is written; default: pretty on a terminal, else json',
  }),
  ATOLL_SLOW_QUERY: integerSetting(
    200,
    0,
    HOUR_MS,
    'statements and lists of entities that take longer are logged, in ms; 0: none',
  ),
  ATOLL_WRITE_DEADLINE: integerSetting(2000, 50, 60_000, 'how long a write may run, in ms'),
  ATOLL_BODY_LIMIT: sizeSetting(1 << 20, 1024, 1 << 30, 'how large a body may be'),
  ATOLL_IMPORT_LIMIT: sizeSetting(16 << 20, 1024, 1e12, 'how large an import of entities may be'),
  ATOLL_ACCESS_TOKEN_TTL: integerSetting(900, 10, 86_400, 'how long an access token is valid, in s'),
  ATOLL_HOUSEKEEPING: integerSetting(
    3600,
    0,
    86_400,
    'how often expired data is removed from a tenant in use, in s; 0: never',
  ),
  ATOLL_EVENT_RETENTION: integerSetting(90, 1, 36_500, 'how long event records are kept, in days'),
  ATOLL_PLUGIN_TIMEOUT: integerSetting(30_000, 100, 600_000, 'how long a plugin may take to start responding, in ms'),
  ATOLL_LAMBDA_PROCESSES: integerSetting(4, 1, 64, 'how many lambdas run at once, each in a process'),
  ATOLL_AI_ECHO: toggleSetting(
    process.env.NODE_ENV === 'production' ? 'off' : 'on',
    'whether integrations may use the built-in AI source "echo"; default: on, in production off',
  ),
  ATOLL_AI_TIMEOUT: integerSetting(60_000, 100, HOUR_MS, 'how long an AI provider may send nothing, in ms'),
  ATOLL_AI_USAGE_RETENTION: integerSetting(400, 62, 36_500, 'how long AI usage records are kept, in days'),
  ATOLL_AI_BODY_LIMIT: sizeSetting(4 << 20, 1024, 1 << 30, 'how large the body of an AI request may be'),
  ATOLL_UPLOAD_LIMIT: sizeSetting(16 << 20, 1024, 1 << 30, 'how large an upload to a vector store may be'),
  ATOLL_FILE_LIMIT: sizeSetting(100 << 20, 1024, 1e13, 'how large an uploaded file may be'),
  ATOLL_SITE_LIMIT: sizeSetting(512 << 20, 1024, 1e13, 'how large the files of a site may be together'),
  ATOLL_FILES_URL: storeSetting('the S3-compatible store of uploaded files; default: the folder files of each tenant'),
  ATOLL_SMTP_URL: Type.String({
    default: '',
    secret: true,
    pattern: '^(smtps?://\\S+)?$',
    expected: 'an address such as smtps://user:password@mail.example.com',
    description:
      'the SMTP server for outgoing mail: smtps://user:password@host; without it, mail stays in an outbox that admins can read',
  }),
  ATOLL_MAIL_FROM: Type.String({
    default: 'Atoll <atoll@localhost>',
    pattern: '^[^\\r\\n]*[^\\s@<>]+@[^\\s@<>]+>?$',
    expected: 'an address such as Atoll <atoll@example.com>',
    description: 'the sender of mail: Name <address>; a tenant with a product name sends under that name',
  }),
  ATOLL_TIME_ZONES: textSetting(
    'a folder of compiled time zones, such as /usr/share/zoneinfo; default: the newer of the built-in rules and those of the system',
  ),
  ATOLL_MIN_FREE: sizeSetting(200 << 20, 0, 1e15, 'how much room the disk must have for the server to be ready'),
  ATOLL_DRAIN: integerSetting(
    0,
    0,
    600,
    'how long a server that is stopped goes on serving while /ready answers 503, in s',
  ),
  ATOLL_BACKUP_TO: textSetting('where backups are kept: a folder, or s3://bucket/prefix'),
  ATOLL_BACKUP_SCHEDULE: Type.String({
    default: '',
    pattern: '^(\\S+( +\\S+){4,5})?$',
    expected: 'a schedule such as 0 3 * * *, which means every day at 03:00 UTC',
    description: 'when the server makes backups of all tenants, as in cron, in UTC; default: only on command',
  }),
  ATOLL_BACKUP_KEEP: Type.String({
    default: 'daily=7 weekly=4 monthly=12 log=7',
    pattern: '^((daily|weekly|monthly|log)=\\d{1,4}( +(daily|weekly|monthly|log)=\\d{1,4})*|all)$',
    expected: 'numbers such as daily=7 weekly=4 monthly=12 log=7, or all',
    description: 'which backups are kept: the latest of so many days, weeks and months, and the log of so many days',
  }),
  ATOLL_BACKUP_CONTINUOUS: toggleSetting('off', 'whether to store every write within seconds, to restore any moment'),
  ATOLL_BACKUP_PASSPHRASE: secretSetting(
    'the passphrase that encrypts backups; without it, and without recipients, they are not encrypted',
  ),
  ATOLL_BACKUP_RECIPIENTS: Type.String({
    default: '',
    pattern: listPattern('age1[a-z0-9]+'),
    expected: 'age recipients such as age1…',
    description: 'the age recipients for which backups are encrypted',
  }),
  ATOLL_URL: Type.String({
    default: '',
    pattern: '^(https?://\\S+)?$',
    expected: 'an address such as https://example.com',
    description: 'the server that commands about tenants and backups work on, instead of the data here',
  }),
  ATOLL_TOKEN: secretSetting("the operator's token of that server"),
  ATOLL_OPERATOR_TOKEN: secretSetting('the bearer token for /operator and /metrics'),
  ATOLL_TEST_CLOCK: toggleSetting('off', 'whether the operator may set the clock, for tests'),
  ATOLL_SIGNING_KEY: secretSetting(
    'the key that signs access tokens; if not set, it is generated and stored in secrets.json',
  ),
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
    throw new ConfigError('ATOLL_TEST_CLOCK moves the clock of a single process. Remove ATOLL_WORKERS.')
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
  return 'expected' in shape ? `use ${shape.expected}` : 'use a text that is not empty'
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
