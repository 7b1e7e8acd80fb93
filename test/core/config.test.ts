// engine: sqlite
import { expect, test } from 'bun:test'
import { readConfig, type SettingName, Settings } from '../../src/config'
import { ConfigError } from '../../src/core/config-error'

const values = (environment: Record<string, string>, file: Record<string, unknown> = {}) =>
  readConfig(environment, file).values

test('readConfig returns the documented defaults when nothing is set', () => {
  const { values, sources } = readConfig({}, {})
  expect(values).toMatchObject({
    ATOLL_PORT: 3000,
    ATOLL_HOST: '127.0.0.1',
    ATOLL_TENANTS: 'tenants',
    ATOLL_DEFAULT_TENANT: '',
    ATOLL_TENANT_HEADER: 'on',
    ATOLL_TRUST_PROXY: 'off',
    ATOLL_ALLOW_PRIVATE_NETWORK: 'off',
    ATOLL_SQLITE_DRIVER: 'bun:sqlite',
    ATOLL_DURABILITY: 'full',
    ATOLL_RATE_LIMITS: 'on',
    ATOLL_HOUSEKEEPING: 3600,
  })
  expect(sources).toEqual({})
})

test('every setting has a description', () => {
  for (const [name, { description }] of Object.entries(Settings.properties)) expect(description, name).toMatch(/\w/)
})

test('environment variables override atoll.json, which overrides the defaults', () => {
  const { values, sources } = readConfig({ ATOLL_HOST: 'a' }, { ATOLL_HOST: 'b', ATOLL_TENANTS: 'c' })
  expect([values.ATOLL_HOST, values.ATOLL_TENANTS]).toEqual(['a', 'c'])
  expect(sources).toEqual({ ATOLL_HOST: 'environment', ATOLL_TENANTS: 'atoll.json' })
})

test('readConfig ignores empty variables and variables without the prefix ATOLL_', () => {
  const environment = { ATOLL_HOST: '', ATOLL_PORT: '', PATH: '/bin', NODE_ENV: 'x', atoll_port: '1', MY_ATOLL_X: '1' }
  expect(readConfig(environment, {})).toEqual(readConfig({}, {}))
})

test('readConfig returns numbers for numeric settings of the environment and of atoll.json', () => {
  const numbers = { ATOLL_PORT: 80, ATOLL_OPEN_TENANTS: 0, ATOLL_WRITE_DEADLINE: 500, ATOLL_ACCESS_TOKEN_TTL: 60 }
  const texts = Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, `${value}`]))
  expect(values({}, numbers)).toMatchObject(numbers)
  expect(values(texts)).toMatchObject(numbers)
})

test('sizes may be written with K, M or G, and other numbers may not', () => {
  const sizes = { ATOLL_BODY_LIMIT: '64K', ATOLL_UPLOAD_LIMIT: '20M', ATOLL_IMPORT_LIMIT: '2G', ATOLL_MIN_FREE: '4096' }
  const bytes = { ATOLL_BODY_LIMIT: 65_536, ATOLL_UPLOAD_LIMIT: 20 << 20, ATOLL_IMPORT_LIMIT: 2 ** 31 }
  expect(values(sizes)).toMatchObject({ ...bytes, ATOLL_MIN_FREE: 4_096 })
  expect(values({}, sizes)).toMatchObject(bytes)
  expect(explainSetting('ATOLL_PORT', '3K', 'environment')).toContain('use a whole number from 0 to 65535')
  expect(explainSetting('ATOLL_BODY_LIMIT', '1.5M', 'environment')).toContain(', or a size such as 200M')
})

const explainSetting = (name: string, value: unknown, source: 'environment' | 'atoll.json') => {
  try {
    const file = source === 'atoll.json' ? { [name]: value } : {}
    const environment = source === 'environment' ? { [name]: `${value}` } : {}
    return `accepted as ${JSON.stringify(readConfig(environment, file).values[name as SettingName])}`
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as Error).message
  }
}

const bad: [SettingName, unknown, string][] = [
  ['ATOLL_PORT', 'abc', 'from 0 to 65535'],
  ['ATOLL_PORT', -1, 'from 0 to 65535'],
  ['ATOLL_PORT', 65_536, 'from 0 to 65535'],
  ['ATOLL_PORT', 80.5, 'from 0 to 65535'],
  ['ATOLL_PORT', '80x', 'from 0 to 65535'],
  ['ATOLL_PORT', '1e3x', 'from 0 to 65535'],
  ['ATOLL_PORT', true, 'from 0 to 65535'],
  ['ATOLL_WRITE_DEADLINE', 49, 'from 50 to 60000'],
  ['ATOLL_BODY_LIMIT', '1 MB', 'from 1024 to'],
  ['ATOLL_ACCESS_TOKEN_TTL', 9, 'from 10 to 86400'],
  ['ATOLL_TENANT_HEADER', 'yes', 'on or off'],
  ['ATOLL_TENANT_HEADER', true, 'on or off'],
  ['ATOLL_TRUST_PROXY', 1, 'on or off'],
  ['ATOLL_DURABILITY', 'FULL', 'full or normal'],
  ['ATOLL_SQLITE_DRIVER', 'node:sqlite', 'bun:sqlite or better-sqlite3'],
]
test.each(bad)('%s=%j is refused by a message that names the setting and the values that fit', (name, value, fits) => {
  for (const source of ['environment', 'atoll.json'] as const) {
    const sentence = explainSetting(name, value, source)
    const place = source === 'environment' ? 'the environment' : 'atoll.json'
    expect(sentence).toStartWith(`Invalid value "${value}" for ${name} in ${place}: use `)
    expect(sentence).toContain(fits)
    expect(sentence).toEndWith('.')
  }
})

test.each(['ATOLL_PORTS', 'ATOLL_', 'ATOLL_port'])('readConfig refuses the unknown variable %s by name', (name) => {
  expect(explainSetting(name, 'x', 'environment')).toStartWith(`Unknown setting ${name} in the environment.`)
})

test('the message about an unknown variable suggests the nearest setting or refers to "atoll doctor"', () => {
  expect(explainSetting('ATOLL_PORTS', 'x', 'environment')).toEndWith('Did you mean ATOLL_PORT?')
  expect(explainSetting('ATOLL_DIR_OF_OURS', 'x', 'environment')).toEndWith('"atoll doctor" lists all settings.')
})

test('the message about an invalid ATOLL_SMTP_URL does not repeat its password', () => {
  const sentence = explainSetting('ATOLL_SMTP_URL', 'mail.example.com:hunter22', 'environment')
  expect(sentence).toContain('ATOLL_SMTP_URL')
  expect(sentence).toContain('smtps://')
  expect(sentence).not.toContain('hunter22')
})

test.each(['port', 'constructor', 'toString', '__proto__', ''])(
  'readConfig refuses the unknown key %j in atoll.json by name',
  (name) => {
    const file = JSON.parse(`{${JSON.stringify(name)}: "x"}`) as Record<string, unknown>
    expect(() => readConfig({}, file)).toThrow(ConfigError)
    expect(() => readConfig({}, file)).toThrow(`Unknown setting ${name} in atoll.json.`)
  },
)

test('readConfig refuses null, lists and objects for every setting in atoll.json', () => {
  for (const name of Object.keys(Settings.properties))
    for (const value of [null, [], {}])
      expect(explainSetting(name, value, 'atoll.json')).toContain(`for ${name} in atoll.json`)
})
