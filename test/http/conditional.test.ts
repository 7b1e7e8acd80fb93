import { beforeAll, describe, expect, test } from 'bun:test'
import { createTestTenant } from '../test-tenant'

let tenant: Awaited<ReturnType<typeof createTestTenant>>
beforeAll(async () => {
  tenant = await createTestTenant()
})

describe('resources of the API', () => {
  test('GET and HEAD answer 304 to the ETag of the version, and 200 to another one', async () => {
    const admin = tenant.as('admin')
    await admin.post('/blueprints', { key: 'notes', name: 'Notes', fields: [{ key: 'text', type: 'text' }] })
    await admin.post('/blueprints/notes/entities', { identifier: 'one', text: 'a' })
    await admin.post('/configurations', { key: 'dashboard', metadata: {} })
    const { _id } = (await admin.post('/lambdas', { name: 'one', code: 'export default () => 1' })).body
    const paths = [
      '/blueprints/notes',
      '/blueprints/notes/entities/one',
      '/configurations/dashboard',
      `/lambdas/${_id}`,
    ]
    for (const path of paths) {
      const { headers } = await admin.get(path)
      const etag = headers.get('etag')!
      for (const sent of [etag, `W/${etag}`, etag.replace(/"$/, '-gzip"'), `"x", ${etag}`]) {
        const again = await admin.get(path, { 'if-none-match': sent })
        expect([again.status, again.body], `${path} ${sent}`).toEqual([304, undefined])
        for (const name of ['etag', 'cache-control', 'vary']) expect(again.headers.get(name)).toBe(headers.get(name))
      }
      expect((await admin.get(path, { 'if-none-match': '"x"' })).status, path).toBe(200)
    }
  })

  test('a caller who may not read learns nothing by an ETag', async () => {
    const { headers } = await tenant.as('admin').get('/blueprints/notes')
    const ifNoneMatch = { 'if-none-match': headers.get('etag')! }
    expect((await tenant.anonymous.get('/blueprints/notes', ifNoneMatch)).status).toBe(401)
    expect((await tenant.anonymous.get('/blueprints/notes', { 'if-none-match': '*' })).status).toBe(401)
  })
})
