import { expect, test } from 'bun:test'
import { nextPagePath } from '../entities/fixtures'
import { type ApiClient, apiClient, createTestTenant, statusAndCode } from '../test-tenant'

/** Lists other than entities, with five items each, and the property that sorts them. */
async function createLists(): Promise<{ path: string; by: ApiClient; name: string }[]> {
  const { as, anonymous, origin } = await createTestTenant()
  const admin = as('admin')
  const credentials = { username: 'list', password: 'correct-horse', authType: 'oauth' }
  expect((await anonymous.post('/signup', { ...credentials, authType: undefined })).status).toBe(201)
  let token = ''
  for (let n = 0; n < 4; n++) token = (await anonymous.post('/signin', credentials)).body.payload.token
  const own = apiClient(origin, { authorization: `Bearer ${token}` })
  for (let n = 0; n < 5; n++) {
    await admin.post('/blueprints', { key: `b${n}`, name: 'B', fields: [] })
    expect((await own.post('/me/api-tokens', { nickname: `t${n}` })).status).toBe(201)
  }
  return [
    { path: '/blueprints', by: admin, name: 'key' },
    { path: '/me/sessions', by: own, name: '_id' },
    { path: '/me/api-tokens', by: own, name: 'nickname' },
  ]
}

test('the links of every list lead to its end, and every page has the total count', async () => {
  for (const { path, by, name } of await createLists()) {
    const all = (await by.get(path)).body
    expect(all, path).toHaveLength(5)
    const seen: unknown[] = []
    let pages = 0
    for (let at: string | undefined = `${path}?limit=2&count=true`; at; pages++) {
      const { status, body, headers } = await by.get(at)
      expect([path, status, headers.get('x-total-count')]).toEqual([path, 200, '5'])
      seen.push(...body)
      at = nextPagePath(headers)
    }
    expect([path, pages, seen]).toEqual([path, 3, all])
    const names = (await by.get(`${path}?sort=-${name}`)).body.map((one: Record<string, string>) => one[name])
    expect(names, path).toEqual([...names].sort().reverse())
  }
})

test('every list refuses invalid values of limit, page, sort and count with 400 INVALID_INPUT', async () => {
  for (const { path, by } of await createLists())
    for (const query of ['limit=-1', 'page=x', 'sort=hash', 'count=2'])
      expect([path, query, ...statusAndCode(await by.get(`${path}?${query}`))]).toEqual([
        path,
        query,
        400,
        'INVALID_INPUT',
      ])
})
