import { describe, expect, test } from 'bun:test'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture, nextPagePath } from '../fixtures'

const fields = [
  { key: 'title', type: 'string', required: true },
  { key: 'price', type: 'number' },
  { key: 'salary', type: 'integer', readRoles: ['admin'], writeRoles: ['admin'] },
  { key: 'tags', type: 'string', multi: true },
]
const fixture = createThingsFixture(fields, fullAccessRules('tenant', 'user'), { history: true })

describe('the versions of an entity', () => {
  test('versions tell who created, changed and removed it, latest first, with values before and after', async () => {
    const { as, path, users } = await fixture
    await as('user').post(path, { identifier: 'one', title: 'A', price: 1 })
    await as('other').put(`${path}/one`, { title: 'B', price: null, tags: ['x'] })
    await as('admin').delete(`${path}/one`)
    const { status, body } = await as('user').get(`${path}/one/history`)
    expect(status).toBe(200)
    expect(body.map(({ at, ...rest }: { at: string }) => [typeof at, rest])).toEqual([
      [
        'string',
        {
          version: 3,
          action: 'remove',
          by: users.admin,
          changes: {
            user: { from: users.user, to: null },
            title: { from: 'B', to: null },
            tags: { from: ['x'], to: null },
          },
        },
      ],
      [
        'string',
        {
          version: 2,
          action: 'change',
          by: users.other,
          changes: { title: { from: 'A', to: 'B' }, price: { from: 1, to: null }, tags: { from: null, to: ['x'] } },
        },
      ],
      [
        'string',
        {
          version: 1,
          action: 'create',
          by: users.user,
          changes: {
            user: { from: null, to: users.user },
            title: { from: null, to: 'A' },
            price: { from: null, to: 1 },
          },
        },
      ],
    ])
  })

  test('versions are read page by page, and with the entity as it was', async () => {
    const { as, path } = await fixture
    const user = as('user')
    await user.post(path, { identifier: 'paged', title: '0' })
    for (let n = 1; n < 5; n++) await user.put(`${path}/paged`, { title: `${n}` })
    const first = await user.get(`${path}/paged/history?$limit=2&$entity=true`)
    expect(first.body.map(({ version, entity }: never) => [version, (entity as { title: string }).title])).toEqual([
      [5, '4'],
      [4, '3'],
    ])
    const second = await user.get(nextPagePath(first.headers)!)
    expect(second.body.map(({ version, entity }: never) => [version, (entity as { title: string }).title])).toEqual([
      [3, '2'],
      [2, '1'],
    ])
    const third = await user.get(nextPagePath(second.headers)!)
    expect(third.body.map(({ version }: { version: number }) => version)).toEqual([1])
    expect(nextPagePath(third.headers)).toBeUndefined()
  })

  test('a write that changes nothing makes no version', async () => {
    const { as, path } = await fixture
    await as('user').post(path, { identifier: 'same', title: 'A' })
    await as('user').put(`${path}/same`, { title: 'A' })
    expect((await as('user').get(`${path}/same/history`)).body).toHaveLength(1)
  })

  test('a field that the caller may not read is in no version', async () => {
    const { as, path } = await fixture
    await as('admin').post(path, { identifier: 'paid', title: 'A', salary: 1 })
    await as('admin').put(`${path}/paid`, { salary: 2 })
    const seen = await as('user').get(`${path}/paid/history?$entity=true`)
    expect(seen.body.map(({ changes }: { changes: object }) => Object.keys(changes))).toEqual([[], ['user', 'title']])
    expect(JSON.stringify(seen.body)).not.toContain('salary')
    const [latest] = (await as('admin').get(`${path}/paid/history`)).body
    expect(latest.changes).toEqual({ salary: { from: 1, to: 2 } })
    expect(JSON.stringify((await as('user').get(`${path}/paid?$asOf=${latest.at}`)).body)).not.toContain('salary')
  })
})

describe('as of a time', () => {
  test('an entity and lists are as they were then', async () => {
    const { as, path, origin: _ } = await fixture
    const user = as('user')
    const made = await user.post(path, { identifier: 'timed', title: 'Old', price: 1 })
    await Bun.sleep(5)
    const changed = await user.put(`${path}/timed`, { title: 'New', price: 2 })
    await Bun.sleep(5)
    const removedAfter = new Date().toISOString()
    await Bun.sleep(5)
    await user.delete(`${path}/timed`)
    const asOf = async (time: string, more = '') => user.get(`${path}/timed?$asOf=${time}${more}`)
    expect((await asOf(made.body.created)).body).toEqual(made.body)
    expect((await asOf(changed.body.updated)).body).toEqual(changed.body)
    expect((await asOf(removedAfter, '&$flat=false')).body.metadata).toEqual({ title: 'New', price: 2 })
    expect(statusAndCode(await asOf(new Date().toISOString()))).toEqual([404, 'ENTITY_NOT_FOUND'])
    const list = async (time: string, filter: string) => (await user.get(`${path}?$asOf=${time}&${filter}`)).body
    expect(await list(made.body.created, 'title=Old')).toEqual([made.body])
    expect(await list(removedAfter, 'title=Old')).toEqual([])
    expect(await list(removedAfter, 'price[$gt]=1&title[$like]=N%25')).toEqual([changed.body])
    expect(await list(new Date().toISOString(), 'title=New')).toEqual([])
  })
})

describe('a restored version', () => {
  test('restoring a version gives an entity its former values, as a change with all checks', async () => {
    const { as, path } = await fixture
    const user = as('user')
    await user.post(path, { identifier: 'back', title: 'A', price: 1 })
    const { headers } = await user.put(`${path}/back`, { title: 'B', price: null, tags: ['x'] })
    const stale = await user.post(`${path}/back/history/1/restore`, undefined, { 'if-match': '"1-x"' })
    expect(statusAndCode(stale)).toEqual([412, 'VERSION_MISMATCH'])
    const restored = await user.post(`${path}/back/history/1/restore`, undefined, { 'if-match': headers.get('etag')! })
    expect([restored.status, restored.body.metadata]).toEqual([200, { title: 'A', price: 1 }])
    expect((await user.get(`${path}/back/history`)).body[0]).toMatchObject({ version: 3, action: 'change' })
    expect(statusAndCode(await user.post(`${path}/back/history/9/restore`))).toEqual([404, 'VERSION_NOT_FOUND'])
  })

  test('restoring a version creates a removed entity again with its identifier', async () => {
    const { as, path, users } = await fixture
    await as('user').post(path, { identifier: 'again', title: 'A', price: 1 })
    await as('user').delete(`${path}/again`)
    expect(statusAndCode(await as('admin').post(`${path}/again/history/2/restore`))).toEqual([400, 'INVALID_INPUT'])
    const restored = await as('admin').post(`${path}/again/history/1/restore`)
    expect([restored.status, restored.body]).toMatchObject([
      201,
      { identifier: 'again', user: users.user, metadata: { title: 'A', price: 1 } },
    ])
    const actions = (await as('user').get(`${path}/again/history`)).body.map(({ action }: { action: string }) => action)
    expect(actions).toEqual(['create', 'remove', 'create'])
  })
})
