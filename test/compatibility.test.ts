// engine: sqlite
import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import type { Command } from 'commander'
import { app } from '../src/app'
import { createProgram } from '../src/commands/program'
import { Settings } from '../src/config'
import { buildOpenApi } from '../src/operations/openapi/document'
import { expectSnapshot } from './compatibility/snapshot'
import { callApi, createTestTenant, fullAccessRules, type TestResponse } from './test-tenant'

// Clients and databases rely on these snapshots, so a difference is a breaking change. Where it is intended, or something is
// new, `UPDATE_SNAPSHOTS=1 bun test test/compatibility.test.ts` writes them again, and the difference is part of the review.
const root = join(import.meta.dir, '..')

type Json = { [key: string]: Json } | Json[] | string | number | boolean | null
const WORDS = ['description', 'summary', 'example', 'examples', 'title']

/** A part of the OpenAPI document without its texts for people. */
function withoutWords(value: Json, isMap = false): Json {
  if (Array.isArray(value)) return value.map((one) => withoutWords(one))
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).filter(([key]) => isMap || !WORDS.includes(key))
  return Object.fromEntries(entries.map(([key, of]) => [key, withoutWords(of, key === 'properties')]))
}

const description = JSON.parse(JSON.stringify(buildOpenApi(app.routes)))

test('every operation keeps its path, method, id, access, parameters, bodies and responses', () => {
  const lines = Object.entries(description.paths as Record<string, Record<string, Record<string, Json>>>)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, operation]) => `${method.toUpperCase()} ${path} ${JSON.stringify(withoutWords(operation))}`,
      ),
    )
    .sort()
  expectSnapshot('operations.txt', lines)
})

test('every named schema keeps its properties', () => {
  const schemas = Object.entries(description.components.schemas as Record<string, Json>)
  expectSnapshot(
    'schemas.txt',
    schemas.map(([name, schema]) => `${name} ${JSON.stringify(withoutWords(schema))}`).sort(),
  )
})

test('every setting keeps its name and default', () => {
  const lines = Object.entries(Settings.properties).map(([name, shape]) => `${name} ${JSON.stringify(shape.default)}`)
  expectSnapshot('settings.txt', lines.sort())
})

test('every command keeps its name, arguments and options', () => {
  const list = (command: Command, path: string[]): string[] => [
    [...path, ...command.registeredArguments.map((argument) => `<${argument.name()}>`)]
      .concat(command.options.map(({ flags }) => `[${flags}]`))
      .join(' '),
    ...command.commands.flatMap((child) => list(child, [...path, child.name()])),
  ]
  expectSnapshot('commands.txt', list(createProgram(), ['atoll']).sort())
})

test('every released migration keeps its checksum', () => {
  const lines = [...new Glob('**/[0-9]*.sql').scanSync(join(root, 'migrations'))].map(
    (path) =>
      `${createHash('sha256')
        .update(readFileSync(join(root, 'migrations', path)))
        .digest('hex')} ${path}`,
  )
  expectSnapshot('migrations.txt', lines.sort())
})

// Words that are stored in databases, or that keys are derived from.
const STORED = {
  'kinds of jobs': [
    ...['mail', 'forgotten-password', 'email-signin', 'delivery', 'integration', 'schedule', 'threads-of-removed'],
    ...['payments-inbox', 'payments-cancel', 'payments-reprice', 'payments-call-off', 'payments-time'],
  ],
  leases: ['jobs', 'housekeeping', 'integrity-check', 'operator'],
  'topics of caches': [
    ...['tenants', 'blueprints', 'actors', 'configurations', 'changes', 'plugins', 'lambdas', 'connections'],
    'integrations',
  ],
  'purposes of derived keys': [
    ...['access-token', 'refresh-token', 'social-journey', 'changes', 'cursor', 'device-cookie', 'setup-link'],
    ...['idempotency-fingerprint', 'idempotency-answer'],
  ],
  'purposes of the vault': ['totp', 'provider', 'plugin', 'lambda', 'connection'],
  'purposes of one-time tokens': [
    ...['verification', 'passwordReset', 'emailRevert', 'secondFactor', 'redirect', 'linking', 'signinLink'],
  ],
  'purposes of challenges': ['registration', 'signin'],
  'states of jobs': ['waiting', 'dead', 'done'],
  'names of events': [
    ...['workspace-created', 'workspace-deleted', 'invite-created', 'invite-accepted', 'invite-declined'],
    ...[
      'signin-failed',
      'impersonation',
      'database-damaged',
      'completion',
      'failure',
      'delivery-failed',
      'lambda-failed',
    ],
    ...['webhook-failed', 'subscription-created', 'coupon-redeemed', 'checkout-failed'],
  ],
}

const source = () =>
  [...new Glob('**/*.{ts,tsx}').scanSync(join(root, 'src'))]
    .map((path) => readFileSync(join(root, 'src', path), 'utf8'))
    .join('\n')

test('every error code keeps its name', () => {
  const codes = new Set([...source().matchAll(/'([A-Z][A-Z\d]*(?:_[A-Z\d]+)+)'/g)].map(([, code]) => code!))
  expectSnapshot('codes.txt', [...codes].filter((code) => !code.startsWith('ATOLL_')).sort())
})

test('every stored word and every purpose of a derived key occurs in the source', () => {
  const text = source()
  for (const [what, words] of Object.entries(STORED))
    for (const word of words)
      expect(new RegExp(`['"\`]${word}['"\`\\s]|\\b${word}: `).test(text), `${what}: ${word}`).toBe(true)
})

test('answers keep their headers and cookies', async () => {
  const { as, anonymous, origin, id } = await createTestTenant()
  const fields = [{ key: 'title', type: 'string' }]
  const permissions = fullAccessRules('tenant', 'user')
  const origins = { origin: 'http://localhost:5173' }
  const entities = '/blueprints/notes/entities'
  const person = { username: 'ada', password: 'correct horse battery' }
  const answers: [what: string, answer: TestResponse][] = [
    ['POST /blueprints', await as('admin').post('/blueprints', { key: 'notes', name: 'Notes', fields, permissions })],
    ['POST entity', await as('user').post(entities, { identifier: 'one', title: 'One' }, { 'idempotency-key': 'k' })],
    [
      'POST entity again',
      await as('user').post(entities, { identifier: 'one', title: 'One' }, { 'idempotency-key': 'k' }),
    ],
    ['GET entity', await as('user').get(`${entities}/one`)],
    ['GET entities', await as('user').get(`${entities}?$count=true`)],
    ['GET export', await as('user').get(`${entities}/export?format=csv`)],
    ['GET entity of a local page', await as('user').get(`${entities}/one`, origins)],
    ['GET /me', await as('user').get('/me')],
    ['GET /me without a credential', await anonymous.get('/me')],
    ['GET /users as a user', await as('user').get('/users')],
    ['GET /unknown', await as('user').get('/unknown')],
    ['PUT /me', await as('user').put('/me', {})],
    ['POST /signup', await anonymous.post('/signup', person)],
    ['GET /health', await callApi('GET', `${origin}/health`)],
    ['GET /', await callApi('GET', `${origin}/`)],
  ]
  const lines = answers.map(([what, { status, headers }]) => {
    const cookies = headers.getSetCookie().map((cookie) => cookie.replaceAll(id, 'TENANT').replace(/=[^;]*/, '=…'))
    return [what, status, ...[...new Set(headers.keys())].sort(), ...cookies].join(' | ')
  })
  expectSnapshot('headers.txt', lines)
})
