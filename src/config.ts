import { readFileSync } from 'node:fs'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { ConfigError } from './core/config-error'
import { nearestKey } from './core/nearest-key'

const onOff = (value: 'on' | 'off', description: string) =>
  Type.Union([Type.Literal('on'), Type.Literal('off')], { default: value, description })
const whole = (value: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ default: value, minimum, maximum, description })

/** The pattern of a list whose items are separated by commas or blanks. */
const listOf = (item: string) => `^(${item}([\\s,]+${item})*)?$`

/** Every setting: its name, what fits, its default. */
export const Settings = Type.Object({
  ATOLL_PORT: whole(3000, 0, 65535, 'the port to listen on; 0 takes any free one'),
  ATOLL_HOST: Type.String({ default: '127.0.0.1', minLength: 1, description: 'the address to listen on' }),
  ATOLL_TENANTS: Type.String({ default: 'tenants', minLength: 1, description: 'the folder of all data' }),
  ATOLL_DEFAULT_TENANT: Type.String({
    default: '',
    pattern: '^([a-z0-9][a-z0-9-]{0,62})?$',
    expected: 'the id of a tenant',
    description: 'the tenant used when neither header nor host names one; without it, the only tenant there is',
  }),
  ATOLL_HOST_CLAIMS: Type.Union([Type.Literal('off'), Type.Literal('dns'), Type.Literal('open')], {
    default: 'off',
    description:
      'how tenants get the hosts of their websites: off: only from the operator; dns: by a TXT record that proves ownership; open: whoever names a free host first has it',
  }),
  ATOLL_DNS_SERVERS: Type.String({
    default: '',
    pattern: listOf('(\\d+(\\.\\d+){3}(:\\d+)?|\\[[0-9a-fA-F:]+\\](:\\d+)?|[0-9a-fA-F:]+)'),
    expected: 'addresses such as 9.9.9.9, [2620:fe::fe]:53',
    description: 'the DNS servers that are asked for proofs of ownership, instead of those of the system',
  }),
  ATOLL_PUBLIC_HOSTS: Type.String({
    default: '',
    pattern: listOf('(\\[[0-9a-fA-F:.]+\\]|[a-zA-Z0-9._-]+)'),
    expected: 'host names such as app.example.com, www.example.com',
    description: "this installation's own host names, which no tenant can claim",
  }),
  ATOLL_TENANT_HEADER: onOff('on', 'whether the header "tenant" may name the tenant'),
  ATOLL_TRUST_PROXY: onOff('off', 'whether the X-Forwarded-… headers come from a proxy of yours'),
  ATOLL_ALLOW_PRIVATE_NETWORK: onOff('off', 'whether outgoing calls may reach private addresses'),
  ATOLL_SQLITE_DRIVER: Type.Union([Type.Literal('bun:sqlite'), Type.Literal('better-sqlite3')], {
    default: 'bun:sqlite',
    description: 'the library that reads and writes SQLite files',
  }),
  ATOLL_SQLITE_VEC: Type.String({
    default: '',
    description: 'a library of sqlite-vec (vec0.so) to compare vectors by, which takes longer but no memory',
  }),
  ATOLL_DURABILITY: Type.Union([Type.Literal('full'), Type.Literal('normal')], {
    default: 'full',
    description: 'normal: faster, but a power cut may undo the last writes',
  }),
  ATOLL_RATE_LIMITS: onOff('on', 'whether sign-ins, sign-ups, coupon codes and the writes of guests are throttled'),
  ATOLL_DATABASE_URL: Type.String({
    default: '',
    secret: true,
    description: 'a PostgreSQL database for the registry and new tenants, instead of files: postgres://…',
  }),
  ATOLL_DATABASE_CLUSTERS: Type.String({
    default: '',
    secret: true,
    description: 'further PostgreSQL databases for tenants: name=postgres://… name=postgres://…',
  }),
  ATOLL_DATABASE_CONNECTIONS: whole(10, 2, 1000, 'how many connections to each PostgreSQL database at most'),
  ATOLL_OPEN_TENANTS: whole(
    0,
    0,
    1_000_000,
    'how many tenants stay open at once; 0 derives it from the open files allowed',
  ),
  ATOLL_LOG_LEVEL: Type.Union(
    (['debug', 'info', 'warn', 'error', 'silent'] as const).map((level) => Type.Literal(level)),
    {
      default: 'info',
      description: 'what is logged: info has a line for each request, warn only refusals and failures',
    },
  ),
  ATOLL_WRITE_DEADLINE: whole(2000, 50, 60_000, 'how long a write may run, in ms'),
  ATOLL_BODY_LIMIT: whole(1 << 20, 1024, 1 << 30, 'how large a body may be, in bytes'),
  ATOLL_IMPORT_LIMIT: whole(16 << 20, 1024, 1e12, 'how large an import of entities may be, in bytes'),
  ATOLL_ACCESS_TOKEN_TTL: whole(900, 10, 86_400, 'how long an access token is good for, in s'),
  ATOLL_HOUSEKEEPING: whole(
    3600,
    0,
    86_400,
    'how often what has expired is removed from a tenant that is in use, in s; 0: never',
  ),
  ATOLL_EVENT_RETENTION: whole(90, 1, 36_500, 'how long event records are kept, in days'),
  ATOLL_PLUGIN_TIMEOUT: whole(30_000, 100, 600_000, 'how long a plugin may take until its answer begins, in ms'),
  ATOLL_LAMBDA_PROCESSES: whole(4, 1, 64, 'how many lambdas run at once, each in a process'),
  ATOLL_AI_ECHO: onOff(
    process.env.NODE_ENV === 'production' ? 'off' : 'on',
    'whether integrations may use the built-in AI source "echo"; off in production unless told',
  ),
  ATOLL_AI_TIMEOUT: whole(60_000, 100, 3_600_000, 'how long the server of an AI source may say nothing, in ms'),
  ATOLL_AI_USAGE_RETENTION: whole(400, 62, 36_500, 'how long it is kept what completions took, in days'),
  ATOLL_AI_BODY_LIMIT: whole(4 << 20, 1024, 1 << 30, 'how large a body of a request to AI may be, in bytes'),
  ATOLL_UPLOAD_LIMIT: whole(16 << 20, 1024, 1 << 30, 'how large an upload to a vector store may be, in bytes'),
  ATOLL_SMTP_URL: Type.String({
    default: '',
    secret: true,
    pattern: '^(smtps?://\\S+)?$',
    expected: 'an address such as smtps://user:password@mail.example.com',
    description: 'the server that mail is sent by: smtps://user:password@host; without it, admins see it in an outbox',
  }),
  ATOLL_MAIL_FROM: Type.String({
    default: 'Atoll <atoll@localhost>',
    pattern: '^[^\\r\\n]*[^\\s@<>]+@[^\\s@<>]+>?$',
    expected: 'an address such as Atoll <atoll@example.com>',
    description: 'the sender of mail: Name <address>',
  }),
  ATOLL_OPERATOR_TOKEN: Type.String({ default: '', secret: true, description: 'the bearer token for /operator' }),
  ATOLL_TEST_CLOCK: onOff('off', 'whether the operator may set the clock, for tests'),
  ATOLL_SIGNING_KEY: Type.String({
    default: '',
    secret: true,
    description: 'signs access tokens; kept in secrets.json when not given',
  }),
})

export type Setting = keyof Static<typeof Settings>
type Shape = (typeof Settings.properties)[Setting]
export type Source = 'default' | 'environment' | 'atoll.json'

/** Reads the environment over `atoll.json` over the defaults; throws a ConfigError that names what does not fit. */
export function readConfig(environment: Record<string, string | undefined>, file: Record<string, unknown>) {
  const given = Object.entries(environment).filter(([key, value]) => key.startsWith('ATOLL_') && value)
  const values = Value.Default(Settings, {}) as Record<string, unknown>
  const sources: Record<string, Source> = {}
  for (const [source, entries] of [
    ['atoll.json', Object.entries(file)],
    ['environment', given],
  ] as const)
    for (const [key, value] of entries) {
      const shape = Object.hasOwn(Settings.properties, key) && Settings.properties[key as Setting]
      if (!shape) throw new ConfigError(unknownSetting(key, source))
      const fitting = shape.type === 'integer' && /^-?\d{1,15}$/.test(`${value}`) ? Number(value) : value
      if (!Value.Check(shape, fitting)) throw new ConfigError(invalidSetting(key, value, shape, source))
      values[key] = fitting
      sources[key] = source
    }
  if (values.ATOLL_TEST_CLOCK === 'on' && environment.NODE_ENV === 'production')
    throw new ConfigError('ATOLL_TEST_CLOCK must be off where NODE_ENV is production.')
  return { values: values as Static<typeof Settings>, sources: sources as Partial<Record<Setting, Source>> }
}

const PLACES: Record<Exclude<Source, 'default'>, string> = {
  environment: 'the environment',
  'atoll.json': 'atoll.json',
}

function unknownSetting(key: string, source: Exclude<Source, 'default'>) {
  const near = nearestKey(key, Object.keys(Settings.properties))
  const hint = near ? `Did you mean ${near}?` : '"atoll doctor" lists all settings.'
  return `Unknown setting ${key} in ${PLACES[source]}. ${hint}`
}

function invalidSetting(key: string, value: unknown, shape: Shape, source: Exclude<Source, 'default'>) {
  const shown = isSecret(key as Setting) ? '' : ` "${value}"`
  return `Invalid value${shown} for ${key} in ${PLACES[source]}: ${expectation(shape)}.`
}

/** Whether its value may hold a password or a key, which is shown nowhere. */
export const isSecret = (name: Setting) => 'secret' in Settings.properties[name]

function expectation(shape: Shape): string {
  if ('anyOf' in shape) return `use ${shape.anyOf.map((choice: { const: string }) => choice.const).join(' or ')}`
  if (shape.type === 'integer') return `use a whole number from ${shape.minimum} to ${shape.maximum}`
  return 'expected' in shape ? `use ${shape.expected}` : 'use a text that is not empty'
}

function fileSettings(): Record<string, unknown> {
  let text: string
  try {
    text = readFileSync('atoll.json', 'utf8')
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return {}
    throw new ConfigError(`atoll.json cannot be read: ${(error as Error).message}`)
  }
  return parsedSettings(text)
}

function parsedSettings(text: string): Record<string, unknown> {
  try {
    const settings: unknown = JSON.parse(text)
    if (settings !== null && typeof settings === 'object' && !Array.isArray(settings))
      return settings as Record<string, unknown>
  } catch {
    throw new ConfigError('atoll.json is not JSON. Check its quotes, commas and brackets.')
  }
  throw new ConfigError('atoll.json must hold an object of settings.')
}

/** The items of a setting that is a list. */
export const itemsOf = (list: string): string[] => list.split(/[\s,]+/).filter(Boolean)

/** The only reader of the environment. */
export const { values: config, sources: configSources } = readConfig(process.env, fileSettings())
