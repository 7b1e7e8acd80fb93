import { afterAll, beforeAll, expect, test } from 'bun:test'
import { diffFolder, pullFolder, pushFolder } from '../../src/definitions/folder-push'
import { kinds } from '../../src/definitions/kinds'
import { OPERATOR, openLocalTarget, openRemoteTarget } from '../../src/definitions/target'
import { handleRequest } from '../../src/gateway'
import { createTempFolder } from '../fakes/cli'
import { errorOf } from '../rejections'
import { createTestTenant, withoutRateLimits } from '../test-tenant'
import { createRichTenant, readTexts, SECRETS } from './fixtures'

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

const readSecret = (name: string) => SECRETS[name as keyof typeof SECRETS]

test('a tenant with things of every kind has the same bytes after a push into an empty tenant and another pull', async () => {
  const [from, to] = [await createTestTenant(), await createTestTenant()]
  const [first, second] = [createTempFolder(), createTempFolder()]
  await createRichTenant(from)
  await pullFolder(await openLocalTarget(from.id), first)
  const texts = await readTexts(first)
  for (const { folder } of Object.values(kinds))
    expect(
      Object.keys(texts).some((path) => path.startsWith(`${folder}/`)),
      folder,
    ).toBe(true)
  for (const kind of Object.values(kinds)) {
    const things = await kind.listAll({ ...from.tenant, actor: OPERATOR })
    const stated = things.flatMap(({ definition }) => Object.keys(definition))
    const missing = Object.keys(kind.shape.properties).filter((key) => key !== kind.nameKey && !stated.includes(key))
    expect(missing, `what a pull of ${kind.folder} leaves out`).toEqual([])
  }
  const all = Object.values(texts).join('\n')
  for (const secret of Object.values(SECRETS)) if (secret.length > 3) expect(all).not.toContain(secret)
  const placeholders = Object.entries(texts).flatMap(([path, text]) =>
    path.endsWith('.json') ? [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name!) : [],
  )
  expect(placeholders.sort()).toEqual(Object.keys(SECRETS).sort())
  expect(all).not.toMatch(/"(_id|created|updated)"|[0-9a-f]{8}-[0-9a-f]{4}-7/)

  const target = openRemoteTarget(server.url.href, to.tokens.admin, to.id)
  expect(await errorOf(pushFolder(target, first))).toMatchObject({ code: 'MISSING_SECRETS' })
  expect((await to.as('admin').get('/blueprints')).body).toEqual([])
  await pushFolder(target, first, { readSecret })
  await pullFolder(target, second)
  expect(await readTexts(second)).toEqual(texts)
  expect(await pushFolder(target, second, { readSecret, prune: true })).toEqual({ changes: [] })
  expect(await pushFolder(target, second)).toEqual({ changes: [] })
  expect(await diffFolder(await openLocalTarget(from.id), first, { prune: true })).toEqual({
    changes: [],
    missingSecrets: [],
    keptSecrets: Object.keys(SECRETS).sort(),
  })
})

test('a pull has all integrations, although they are larger than a page of their list may be', async () => {
  const { as, tenant } = await createTestTenant()
  const names = Array.from({ length: 50 }, (_, n) => `integration ${n}`)
  for (const [n, name] of names.entries()) {
    const target = { kind: 'ai', sourceId: 'echo', systemPrompt: `${n} `.repeat(33_000) }
    const { status } = await as('admin').post('/integrations', { name, trigger: { kind: 'webhook' }, target })
    expect(status).toBe(201)
  }
  const integrations = await kinds.integration.listAll({ ...tenant, actor: OPERATOR })
  expect(integrations.map(({ name }) => name)).toEqual(names)
})
