// engine: sqlite
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { hkdfSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { verifyAccessToken } from '../../src/accounts/access-tokens'
import { findKnownDevice } from '../../src/accounts/device-cookie'
import { requireFlowState } from '../../src/accounts/social/flow-cookie'
import { codeAt, decodeBase32, toOtpauthUri } from '../../src/accounts/totp/codes'
import { hashRecoveryCode } from '../../src/accounts/totp/recovery-codes'
import { fieldTypeNames, fieldTypes } from '../../src/blueprints/fields'
import { config } from '../../src/config'
import { moveClock, toIsoString } from '../../src/core/clock'
import { deriveToken, sha256 } from '../../src/core/crypto'
import { decrypt } from '../../src/core/encryption'
import { etagOf } from '../../src/core/etag'
import { createSeal, type View } from '../../src/entities/changes/view'
import { events } from '../../src/jobs/tables'
import { reencrypt } from '../../src/platform/vault/vault'
import { signUserToken, signWebhook } from '../../src/plugins/secrets'
import { toCursor } from '../../src/storage/keyset'
import { deriveKey } from '../../src/tenancy/installation-keys'
import { createTenant, type Tenant } from '../../src/tenancy/tenants'
import { errorOf } from '../rejections'
import { MASTER_SECRETS, PLUGIN_SECRET } from './earlier-database'
import { expectSnapshot } from './snapshot'

// Stored data and issued texts hold these values. A difference makes them unreadable, however equal the code looks.
const src = join(import.meta.dir, '../../src')
const NOON = Date.parse('2026-01-02T12:00:00.500Z')
const USER = '01a2056b-e942-73a9-8318-d3caebc3e8fb'
const TOTP_SECRET = 'VZFI7YK3JL4XMW6YD7U2FKETRDHB3B42'
const originalKey = config.ATOLL_SIGNING_KEY
let tenant: Tenant

beforeAll(async () => {
  config.ATOLL_SIGNING_KEY = MASTER_SECRETS.signingKey
  tenant = await createTenant('compatible', ['compatible.test'])
})
afterAll(() => {
  config.ATOLL_SIGNING_KEY = originalKey
  moveClock()
})

const PURPOSES = [
  ...(['access-token', 'refresh-token', 'social-journey', 'changes', 'cursor', 'device-cookie'] as const),
  ...(['idempotency-fingerprint', 'idempotency-answer', 'file-link', 'backup-contents'] as const),
]
const LONG_TEXT = `${'ä'.repeat(255)}😀 and more`
const VALUES = {
  string: ['', 'a', 'Ä', 'e\u0301', '😀', LONG_TEXT],
  text: ['one\ntwo', LONG_TEXT],
  number: [0, -0, 1, -1, 0.1, -1.5, 1e21, 5e-324, -1e-7, Number.MAX_VALUE],
  integer: [0, 1, -1, 255, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER],
  decimal: ['0', '-0.0', '1.5', '1.50', '-1.5', '0.001', '1000000000000000000000.01', '-999'],
  boolean: [false, true],
  date: ['2024-02-29', '0001-01-01'],
  datetime: ['2024-03-01T10:00:00Z', '2024-03-01T11:00:00.123+01:00', '1969-12-31T23:59:59Z'],
  time: ['00:00', '23:59', '23:59:58'],
  file: ['/files/one.png', 'https://acme.test/é.png'],
  email: ['Ada@Acme.test'],
  url: ['https://Acme.test/é?a=1'],
  relation: [USER],
} as Record<string, unknown[]>

test('each purpose derives the same key from a signing key and a tenant', async () => {
  const purposes = new Set<string>()
  for (const path of new Glob('**/*.ts').scanSync(src))
    for (const [, purpose] of readFileSync(join(src, path), 'utf8').matchAll(/deriveKey\([\w.]+, '([^']+)'\)/g))
      purposes.add(purpose!)
  expect([...purposes].sort()).toEqual(PURPOSES.toSorted())
  const lines = PURPOSES.map(
    async (purpose) => `${purpose} ${sha256(Buffer.from(await deriveKey('acme', purpose)).toString('hex'))}`,
  )
  expectSnapshot('derived-keys.txt', await Promise.all(lines))
})

test('each field type has the same index keys', () => {
  const indexed = fieldTypeNames.filter((name) => fieldTypes[name].toIndexKey)
  expect(indexed.filter((name) => !VALUES[name])).toEqual([])
  const lines = indexed.flatMap((name) =>
    VALUES[name]!.map((value) => {
      const key = (fieldTypes[name].toIndexKey as (value: unknown) => string)(value)
      return `${name} ${JSON.stringify(value)} ${Buffer.from(key).toString('hex')}`
    }),
  )
  expectSnapshot('index-keys.txt', lines)
})

test('hashes, tokens, signatures, ETags and cursors have the same values', async () => {
  moveClock(NOON)
  const keys = [
    { name: 'created', column: events.created, descending: true },
    { name: '_id', column: events._id, descending: true },
  ]
  const view = { fingerprint: sha256('view') } as View
  const ctx = { tenant: 'acme' } as Parameters<typeof createSeal>[0]
  expectSnapshot('issued-values.txt', [
    `hash of an API token ${sha256('atl_00')}`,
    `hash of a recovery code ${hashRecoveryCode(USER, 'ZO3K lhjn-c53k-kkwh')}`,
    `successor of a refresh token ${deriveToken(await deriveKey('acme', 'refresh-token'), 'token')}`,
    `code of a second factor ${codeAt(decodeBase32(TOTP_SECRET), 12_345_678)}`,
    `address of a second factor ${toOtpauthUri(TOTP_SECRET, 'Acme & Co', 'ada@acme.test')}`,
    `signature of a webhook ${JSON.stringify(signWebhook('msg_1', '{"a":"é"}', [PLUGIN_SECRET, PLUGIN_SECRET]))}`,
    `token for a plugin ${signUserToken('plugin', PLUGIN_SECRET, { sub: USER })}`,
    `ETags ${etagOf(3, '2026-01-02T12:00:00.500Z')} ${etagOf(3, NOON, 2)}`,
    `cursor of a list ${toCursor(keys, { created: NOON, _id: USER })}`,
    `seal of an event id ${await createSeal(ctx, view, 7)}`,
    `time ${toIsoString(NOON)}`,
  ])
})

test('a secret that was encrypted earlier is decrypted, and encrypted with the key of the same derivation', () => {
  const keys = {
    current: 2,
    all: new Map([
      [1, MASTER_SECRETS.vaultKey],
      [2, 'another-vault-key'],
    ]),
  }
  const ref = { purpose: 'connection', owner: USER, name: 'token' }
  const row = { ...ref, key: 1, text: SEALED }
  const again = Buffer.from(reencrypt({ tenant: 'acme' }, keys, row), 'base64')
  const key = new Uint8Array(hkdfSync('sha256', 'another-vault-key', 'acme', 'vault', 32))
  expect(decrypt(key, again, JSON.stringify(['acme', 'connection', USER, 'token']))).toBe('sk-invented é')
})

test('an access token that was signed earlier is valid until it expires', async () => {
  moveClock(NOON)
  expect(await verifyAccessToken(tenant, ACCESS_TOKEN)).toMatchObject({ sub: USER, tid: 'compatible', ver: 1 })
  moveClock(NOON + 901_000)
  expect(await verifyAccessToken(tenant, ACCESS_TOKEN)).toBeUndefined()
})

test('a device cookie proves its account and no other', async () => {
  const request = new Request('http://compatible.test', { headers: { host: 'compatible.test', cookie: DEVICE_COOKIE } })
  expect(await findKnownDevice(request, tenant, USER)).toBe(/=([^.]*)/.exec(DEVICE_COOKIE)![1])
  expect(await findKnownDevice(request, tenant, 'another')).toBeUndefined()
})

test('the cookie of a sign-in by a provider is accepted for 10 minutes', async () => {
  moveClock(NOON)
  const request = new Request('http://compatible.test', { headers: { host: 'compatible.test', cookie: FLOW_COOKIE } })
  expect(await requireFlowState(request, tenant, 'google', 'state')).toMatchObject({ verifier: 'verifier' })
  moveClock(NOON + 601_000)
  expect(await errorOf(requireFlowState(request, tenant, 'google', 'state'))).toMatchObject({ code: 'INVALID_STATE' })
})

// Commit f900b62 made these with the keys above.
const SEALED = 'McL/J36QUOdOjnLzNzzZoAbVfOUXSLdhc9cWLye3R+w5GzL0+1XM7NhY'
const ACCESS_TOKEN =
  'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJqdGkiOiIwMWEyMDU2Zi05OGQzLTcyMWYtOWM2Yy1iZmZkMzI5Y2VkN2EiLCJzdWIiOiIwMWEyMDU2Yi1lOTQyLTczYTktODMxOC1kM2NhZWJjM2U4ZmIiLCJ0aWQiOiJjb21wYXRpYmxlIiwic2lkIjoiMDFhMjA1NmItZTk0Mi03M2E5LTgzMTgtZDNjYWViYzNlOGZjIiwidmVyIjoxLCJuYmYiOjE3NjczNTUxNDAsImV4cCI6MTc2NzM1NjEwMH0.BpODyknuZHlKI8zRCxTgOlMeEJkS4e68gsMBrHPOqNk'
const DEVICE_COOKIE =
  'atoll_compatible_device=LSHZpdn9VG-aP1E-0OsK2AslcosTUt_1NMrjMwKws7I.uVEpeVH1PyTSwn-oSaykSKVMk0RdEzH3C7nGJO1k2R0'
const FLOW_COOKIE =
  'atoll_compatible_auth=_pUSqDo0qLv8bVS0JVMJJqXxiRdEPuVbBd8NmmDM_ClMOUv7GeqocwMSnEvdNwfeyWzGLhCE-ytU5ab4SH8pK-TXOxJbZtQscbCplQYpapPYces9TywWRJymdEA10vCDbowN3UHYrW-DOJe-OvZoq45rn4oiPb15K6GM5h4I4A'
