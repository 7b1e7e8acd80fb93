import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { writeFolder } from '../../src/definitions/folder'
import { planPush, pullDefinitions, push, reportPlan } from '../../src/definitions/push'
import { type DefinitionTarget, openLocalTarget, openRemoteTarget } from '../../src/definitions/target'
import { handleRequest } from '../../src/gateway'
import { createTempFolder } from '../fakes/cli'
import { createTestTenant, withoutRateLimits } from '../test-tenant'

let server: ReturnType<typeof Bun.serve>
let limits: Disposable
beforeAll(() => {
  limits = withoutRateLimits()
  server = Bun.serve({ port: 0, fetch: (request) => handleRequest(request) })
})
afterAll(async () => {
  limits[Symbol.dispose]()
  await server.stop(true)
})

const remote = ({ id, tokens }: Awaited<ReturnType<typeof createTestTenant>>) =>
  openRemoteTarget(server.url.href, tokens.admin, id)

const readTexts = async (folder: string) => {
  const names = readdirSync(join(folder, 'blueprints')).sort()
  return Promise.all(names.map(async (name) => [name, await Bun.file(join(folder, 'blueprints', name)).text()]))
}
const write = (folder: string, key: string, definition: object) =>
  Bun.write(join(folder, 'blueprints', `${key}.json`), JSON.stringify(definition))

async function pushAll(target: DefinitionTarget, folder: string, { prune = false, pruneData = false } = {}) {
  const plan = await planPush(target, folder, prune)
  const changes = await reportPlan(target, plan)
  await push(target, folder, plan, pruneData)
  return changes
}

const title = { key: 'title', type: 'string' }

test('definitions pushed into an empty tenant of a server and pulled again have the same bytes', async () => {
  const [from, to] = [await createTestTenant(), await createTestTenant()]
  const [first, second] = [createTempFolder(), createTempFolder()]
  await write(first, 'authors', {
    name: 'Authors',
    fields: [title, { key: 'best', type: 'relation', target: 'books' }],
  })
  const rules = { permissions: [{ operation: 'read', guest: true, scope: 'tenant' }], permissionScope: 'tenant' }
  const by = { key: 'by', type: 'relation', target: 'authors', onDelete: 'nullify' }
  await write(first, 'books', {
    name: 'Books',
    description: 'All',
    fields: [{ ...title, required: true }, by],
    ...rules,
  })
  const local = await openLocalTarget(from.id)
  await pushAll(local, first)
  expect(await pullDefinitions(local, first)).toEqual({ blueprints: 2 })
  await pushAll(remote(to), first)
  await pullDefinitions(remote(to), second)
  expect(await readTexts(second)).toEqual(await readTexts(first))
  expect(await pushAll(remote(to), second)).toEqual([])
})

test('random blueprints make the round trip byte for byte', async () => {
  const field = fc.record(
    {
      key: fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/),
      type: fc.constantFrom('string', 'number', 'boolean', 'date'),
      required: fc.boolean(),
      title: fc.string({ maxLength: 9 }).map((text) => `T${text.replace(/[^a-z]/g, '')}`),
    },
    { requiredKeys: ['key', 'type'] },
  )
  const fields = fc.uniqueArray(field, { selector: ({ key }) => key, maxLength: 6 })
  const tenant = fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/), fields, { maxKeys: 4, minKeys: 1 })
  await fc.assert(
    fc.asyncProperty(tenant, async (blueprints) => {
      const [from, to] = [await createTestTenant(), await createTestTenant()]
      const [first, second] = [createTempFolder(), createTempFolder()]
      for (const [key, fields] of Object.entries(blueprints)) await write(first, key, { name: key, fields })
      await pushAll(await openLocalTarget(from.id), first)
      await pullDefinitions(await openLocalTarget(from.id), first)
      await pushAll(remote(to), first)
      await pullDefinitions(remote(to), second)
      expect(await readTexts(second)).toEqual(await readTexts(first))
    }),
    { numRuns: 8 },
  )
}, 60_000)

test('a renamed field keeps its values, and a removed blueprint needs prune, and with entities also pruneData', async () => {
  const tenant = await createTestTenant()
  const [target, folder, admin] = [remote(tenant), createTempFolder(), tenant.as('admin')]
  await write(folder, 'books', { name: 'Books', fields: [title] })
  await pushAll(target, folder)
  const { status, body } = await admin.post('/blueprints/books/entities', { title: 'Emma' })
  expect(status).toBe(201)
  await write(folder, 'books', { name: 'Books', fields: [{ key: 'name', type: 'string', renamedFrom: 'title' }] })
  const details = ['renames the field "title" to "name"']
  expect(await pushAll(target, folder)).toEqual([
    { action: 'rename', kind: 'blueprint', name: 'books', details, entities: 1 },
  ])
  expect((await admin.get(`/blueprints/books/entities/${body._id}`)).body.name).toBe('Emma')
  expect(await pushAll(target, folder)).toEqual([])
  await write(folder, 'books', { name: 'Books', fields: [] })
  expect(await reportPlan(target, await planPush(target, folder))).toMatchObject([
    { action: 'change', details: ['removes the field "name" and its values'], entities: 1 },
  ])
  await Bun.file(join(folder, 'blueprints', 'books.json')).delete()
  expect(await pushAll(target, folder)).toEqual([])
  await expect(pushAll(target, folder, { prune: true })).rejects.toMatchObject({ code: 'BLUEPRINT_NOT_EMPTY' })
  expect(await pushAll(target, folder, { prune: true, pruneData: true })).toMatchObject([
    { action: 'remove', name: 'books', entities: 1 },
  ])
  expect((await admin.get('/blueprints/books')).status).toBe(404)
})

test('a push of what somebody else has changed is 412 with both sides', async () => {
  const tenant = await createTestTenant()
  const [target, folder] = [remote(tenant), createTempFolder()]
  await write(folder, 'books', { name: 'Books', fields: [title] })
  await pushAll(target, folder)
  const plan = await planPush(target, folder)
  expect(plan.changes).toEqual([])
  await write(folder, 'books', { name: 'Mine', fields: [title] })
  const late = await planPush(target, folder)
  expect((await tenant.as('admin').patch('/blueprints/books', { name: 'Theirs' })).status).toBe(200)
  await expect(push(target, folder, late)).rejects.toMatchObject({ status: 412 })
  const sides = [expect.stringContaining('Mine'), expect.stringContaining('Theirs')].map((message) => ({
    ...{ path: expect.any(String), message },
  }))
  await expect(planPush(target, folder)).rejects.toMatchObject({ status: 412, more: { details: sides } })
})

test('a push that fails says what is made, and the same push finishes it once the file is corrected', async () => {
  const tenant = await createTestTenant()
  const [target, folder] = [remote(tenant), createTempFolder()]
  await write(folder, 'a', { name: 'A', fields: [title] })
  await write(folder, 'b', { name: 'B', fields: [{ ...title, pattern: '(' }] })
  await expect(pushAll(target, folder)).rejects.toThrow('1 of 2 changes are made.')
  await write(folder, 'b', { name: 'B', fields: [title] })
  expect(await pushAll(target, folder)).toEqual([{ action: 'create', kind: 'blueprint', name: 'b' }])
  await write(folder, 'b', { name: 'B', fields: [title], permisions: [] })
  await expect(planPush(target, folder)).rejects.toThrow('"blueprints/b.json" has a property')
})

test('a token with the scope definitions:write pushes, one with definitions:read only compares, others do neither', async () => {
  const tenant = await createTestTenant()
  const folder = createTempFolder()
  await write(folder, 'books', { name: 'Books', fields: [title] })
  const open = async (scope: string) => {
    const { token } = await issueApiToken(tenant.tenant, tenant.users.admin, { nickname: 'ci', scopes: [scope] })
    return openRemoteTarget(server.url.href, token, tenant.id)
  }
  const forbidden = { status: 403, code: 'FORBIDDEN' }
  await expect(pushAll(await open('definitions:read'), folder)).rejects.toMatchObject(forbidden)
  expect(await pushAll(await open('definitions:write'), folder)).toMatchObject([{ action: 'create' }])
  expect(await pushAll(await open('definitions:read'), folder)).toEqual([])
  await expect(pushAll(await open('entities:write'), folder)).rejects.toMatchObject(forbidden)
  const token = await issueApiToken(tenant.tenant, tenant.users.admin, {
    ...{ nickname: 'ci', scopes: ['definitions:write'] },
  })
  const headers = { 'x-api-key': token.token }
  expect((await tenant.anonymous.get('/lambdas', headers)).status).toBe(403)
  const user = openRemoteTarget(server.url.href, tenant.tokens.user, tenant.id)
  await expect(pushAll(user, folder)).rejects.toMatchObject(forbidden)
})

test('writeFolder refuses a name that would lead out of the folder, and writes nothing', async () => {
  const folder = createTempFolder()
  const definition = { name: 'Things', fields: [] }
  const written = writeFolder(folder, new Map([['../../things', definition]]))
  await expect(written).rejects.toMatchObject({ status: 502, code: 'UNEXPECTED_ANSWER' })
  expect(readdirSync(join(folder, 'blueprints'))).toEqual([])
})
