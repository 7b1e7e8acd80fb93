import { expect, setDefaultTimeout, test } from 'bun:test'
import { DAY_MS, HOUR_MS, moveClock, now } from '../../src/core/clock'
import { removeUnusedFiles } from '../../src/files/unused-files'
import { createTestTenant, fullAccessRules } from '../test-tenant'
import { fileClient, PNG } from './fixtures'

setDefaultTimeout(60_000)

async function createTenantWithPages() {
  const tenant = await createTestTenant()
  const { status } = await tenant
    .as('admin')
    .post('/blueprints', {
      ...{ key: 'pages', name: 'Pages', permissions: fullAccessRules('user', '*') },
      fields: [{ key: 'cover', type: 'file' }],
    })
  expect(status).toBe(201)
  const lease = { ...tenant.tenant, signal: new AbortController().signal } as never
  const client = fileClient(tenant, tenant.tokens.user)
  return {
    ...tenant,
    client,
    /** Runs the job as if it were so much later. */
    async removeUnusedAfter(ms: number) {
      moveClock(now() + ms)
      await removeUnusedFiles(lease).finally(() => moveClock())
    },
    listNames: async (): Promise<string[]> =>
      (await tenant.as('admin').get('/files?sort=name')).body.map(({ name }: { name: string }) => name).sort(),
  }
}

test('a file that no entity has named for a day is removed, unless it was uploaded with keep', async () => {
  const { client, as, removeUnusedAfter, listNames } = await createTenantWithPages()
  await client.upload(PNG, 'unused.png')
  const { body: named } = await client.upload(PNG, 'named.png')
  await as('user').post('/blueprints/pages/entities', { cover: named._id })
  expect((await client.send('POST', '/files?name=kept.txt&keep=true', {}, 'kept')).status).toBe(201)
  const form = new FormData()
  form.set('file', new File(['kept'], 'kept-by-part.txt'))
  form.set('keep', 'true')
  expect((await client.uploadForm(form)).status).toBe(201)
  const wrong = new FormData()
  wrong.set('keep', 'perhaps')
  wrong.set('file', new File(['x'], 'x.txt'))
  expect((await client.uploadForm(wrong)).status).toBe(400)
  const all = ['kept-by-part.txt', 'kept.txt', 'named.png', 'unused.png']
  await removeUnusedAfter(23 * HOUR_MS)
  expect(await listNames()).toEqual(all)
  await removeUnusedAfter(25 * HOUR_MS)
  expect(await listNames()).toEqual(all.slice(0, 3))
})

test('a file stays for a day after the last entity that named it was deleted or changed', async () => {
  const { client, as, removeUnusedAfter, listNames } = await createTenantWithPages()
  const { body: first } = await client.upload(PNG, 'first.png')
  const { body: second } = await client.upload(PNG, 'second.png')
  const { body: page } = await as('user').post('/blueprints/pages/entities', { cover: first._id })
  const { body: other } = await as('user').post('/blueprints/pages/entities', { cover: second._id })
  await removeUnusedAfter(10 * DAY_MS)
  expect(await listNames()).toHaveLength(2)
  await as('user').put(`/blueprints/pages/entities/${page._id}`, { cover: null })
  await as('user').delete(`/blueprints/pages/entities/${other._id}`)
  await removeUnusedAfter(10 * DAY_MS)
  expect(await listNames()).toHaveLength(2)
  await as('user').put(`/blueprints/pages/entities/${page._id}`, { cover: second._id })
  await removeUnusedAfter(12 * DAY_MS)
  expect(await listNames()).toEqual(['second.png'])
})

test('the files of a deleted user stay while entities name them, and are removed afterwards, even those to keep', async () => {
  const { client, as, users, removeUnusedAfter, listNames } = await createTenantWithPages()
  const uploaded = await client.send('POST', '/files?name=named.txt&keep=true', {}, 'x')
  const { _id } = (await uploaded.json()) as { _id: string }
  await client.send('POST', '/files?name=kept.txt&keep=true', {}, 'y')
  const { body: page } = await as('admin').post('/blueprints/pages/entities', { cover: _id })
  expect((await as('admin').delete(`/users/${users.user}`)).status).toBe(200)
  expect(await listNames()).toEqual(['named.txt'])
  await as('admin').delete(`/blueprints/pages/entities/${page._id}`)
  await removeUnusedAfter(0)
  await removeUnusedAfter(2 * DAY_MS)
  expect(await listNames()).toEqual([])
})
