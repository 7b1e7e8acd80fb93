import { afterAll, describe, expect, test } from 'bun:test'
import { DAY_MS, moveClock, now } from '../../../src/core/clock'
import { removeExpired } from '../../../src/entities/history/retention'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture } from '../fixtures'

afterAll(() => moveClock())
const fields = [{ key: 'title', type: 'string' }]
const rows = async ({ tenant }: Awaited<ReturnType<typeof createThingsFixture>>) =>
  Number((await tenant.db.query('select count(*) from entity_versions'))[0]![0])
const clean = ({ tenant }: Awaited<ReturnType<typeof createThingsFixture>>) =>
  removeExpired({ ...tenant, token: 1, signal: new AbortController().signal })

describe('the readers of a history', () => {
  test('only the owner and admins see the versions of an entity, also after its removal', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('user', 'user'), { history: true })
    const { as, path, anonymous } = own
    await as('user').post(path, { identifier: 'a', title: 'secret' })
    for (const at of [`${path}/a/history`, `${path}/a?$asOf=${new Date(now()).toISOString()}`]) {
      expect((await as('user').get(at)).status).toBe(200)
      expect((await as('admin').get(at)).status).toBe(200)
      expect(statusAndCode(await as('other').get(at))).toEqual([404, 'ENTITY_NOT_FOUND'])
      expect((await anonymous.get(at)).status).toBe(401)
    }
    await as('user').delete(`${path}/a`)
    expect((await as('user').get(`${path}/a/history`)).body).toHaveLength(2)
    expect((await as('admin').get(`${path}/a/history`)).body).toHaveLength(2)
    expect(statusAndCode(await as('other').get(`${path}/a/history`))).toEqual([404, 'ENTITY_NOT_FOUND'])
    expect(statusAndCode(await as('other').post(`${path}/a/history/1/restore`))).toEqual([404, 'ENTITY_NOT_FOUND'])
  })

  test('a version is restored by users who may not write a field that stays as it is', async () => {
    const guarded = [...fields, { key: 'checked', type: 'boolean', writeRoles: ['admin'] }]
    const { as, path } = await createThingsFixture(guarded, fullAccessRules('user', 'user'), { history: true })
    await as('user').post(path, { identifier: 'a', title: 'first' })
    await as('user').put(`${path}/a`, { title: 'second' })
    expect(await as('user').post(`${path}/a/history/1/restore`)).toMatchObject({
      status: 200,
      body: { title: 'first' },
    })
    await as('admin').put(`${path}/a`, { checked: true })
    expect(statusAndCode(await as('user').post(`${path}/a/history/2/restore`))).toEqual([403, 'FORBIDDEN'])
    expect((await as('user').get(`${path}/a`)).body).toMatchObject({ title: 'first', checked: true })
    expect((await as('admin').post(`${path}/a/history/2/restore`)).body).toMatchObject({ title: 'second' })
  })

  test('a version is only restored over the entity that its writer has read', async () => {
    const { as, path } = await createThingsFixture(fields, fullAccessRules('user', 'user'), { history: true })
    const user = as('user')
    await user.post(path, { identifier: 'a', title: 'first' })
    await user.put(`${path}/a`, { title: 'second' })
    const etag = `${(await user.get(`${path}/a`)).headers.get('etag')}`
    await user.put(`${path}/a`, { title: 'third' })
    const restore = (version: string) => user.post(`${path}/a/history/1/restore`, undefined, { 'if-match': version })
    expect(statusAndCode(await restore(etag))).toEqual([412, 'VERSION_MISMATCH'])
    const current = await user.get(`${path}/a`)
    expect(current.body.title).toBe('third')
    const restored = await restore(`${current.headers.get('etag')}`)
    expect([restored.status, restored.body.title]).toEqual([200, 'first'])
    expect(restored.headers.get('etag')).toBe((await user.get(`${path}/a`)).headers.get('etag'))
  })

  test('versions from before a transfer are hidden from the new owner, and seen by admins', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('user', 'user'), { history: true })
    const { as, path, users } = own
    await as('user').post(path, { identifier: 'a', title: 'secret' })
    await as('user').put(`${path}/a`, { title: 'secret, too' })
    await Bun.sleep(5)
    const time = new Date(now()).toISOString()
    await Bun.sleep(5)
    expect((await as('admin').put(`${path}/a`, { user: users.other, title: 'given' })).status).toBe(200)
    await as('other').put(`${path}/a`, { title: 'mine' })
    const seen = await as('other').get(`${path}/a/history?$entity=true`)
    expect(seen.body).toMatchObject([
      { version: 4, changes: { title: { from: 'given', to: 'mine' } } },
      { version: 3, changes: {}, entity: { title: 'given' } },
    ])
    expect(seen.body).toHaveLength(2)
    expect(JSON.stringify(seen.body)).not.toContain('secret')
    for (const version of [1, 2])
      expect(statusAndCode(await as('other').post(`${path}/a/history/${version}/restore`))).toEqual([
        404,
        'VERSION_NOT_FOUND',
      ])
    expect((await as('other').get(`${path}/a?$asOf=${time}`)).status).toBe(404)
    expect((await as('other').get(`${path}?$asOf=${time}`)).body).toEqual([])
    expect((await as('user').get(`${path}/a/history`)).status).toBe(404)
    expect((await as('admin').get(`${path}/a/history`)).body).toHaveLength(4)
    expect((await as('admin').get(`${path}?$asOf=${time}`)).body).toMatchObject([{ title: 'secret, too' }])
    await as('admin').put(`${path}/a`, { user: users.user })
    const back = (await as('user').get(`${path}/a/history`)).body
    expect(back.map(({ version }: { version: number }) => version)).toEqual([5, 2, 1])
    expect(JSON.stringify(back)).not.toContain('mine')
  })

  test('the next owner of an identifier does not see what an earlier entity of that name had', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('user', 'user'), { history: true })
    const { as, path } = own
    await as('user').post(path, { identifier: 'a', title: 'secret' })
    await Bun.sleep(5)
    const time = new Date(now()).toISOString()
    await Bun.sleep(5)
    await as('user').delete(`${path}/a`)
    await as('other').post(path, { identifier: 'a', title: 'mine' })
    const seen = await as('other').get(`${path}/a/history?$entity=true`)
    expect(seen.body.map(({ version }: { version: number }) => version)).toEqual([3])
    expect(JSON.stringify(seen.body)).not.toContain('secret')
    expect((await as('other').get(`${path}/a?$asOf=${time}`)).status).toBe(404)
    expect((await as('other').get(`${path}?$asOf=${time}`)).body).toEqual([])
    expect((await as('user').get(`${path}?$asOf=${time}`)).body).toMatchObject([{ title: 'secret' }])
    expect((await as('admin').get(`${path}/a/history`)).body).toHaveLength(3)
  })

  test('a new field does not show what a removed one of the same key had, and a renamed one does', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user'), { history: true })
    const { as, path } = own
    await as('user').post(path, { identifier: 'a', title: 'one' })
    await as('user').put(`${path}/a`, { title: 'two' })
    const renamed = await as('admin').put('/blueprints/things', {
      fields: [{ key: 'name', type: 'string', renamedFrom: 'title' }],
    })
    expect(renamed.status).toBe(200)
    const [latest] = (await as('user').get(`${path}/a/history`)).body
    expect(latest.changes).toEqual({ name: { from: 'one', to: 'two' } })
    await as('admin').put('/blueprints/things', { fields: [] })
    await as('admin').put('/blueprints/things', { fields: [{ key: 'name', type: 'string' }] })
    expect(JSON.stringify((await as('admin').get(`${path}/a/history?$entity=true`)).body)).not.toContain('one')
  })
})

describe('the extent of a history', () => {
  test('a purge by an admin removes the versions with the entity, and nobody else may purge', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user'), { history: true })
    const { as, path } = own
    await as('user').post(path, { identifier: 'a', title: 'one' })
    await as('user').post(path, { identifier: 'b', title: 'one' })
    expect((await as('user').delete(`${path}/a?purge=true`)).status).toBe(403)
    expect((await as('admin').delete(`${path}/a?purge=true`)).status).toBe(200)
    await as('user').delete(`${path}/b`)
    expect(await rows(own)).toBe(1)
    expect((await as('admin').delete(`${path}/b?purge=true`)).status).toBe(200)
    expect(await rows(own)).toBe(0)
    expect(statusAndCode(await as('admin').delete(`${path}/b?purge=true`))).toEqual([404, 'ENTITY_NOT_FOUND'])
  })

  test('an entity from before the history has its state as first version, and switching off removes all', async () => {
    const own = await createThingsFixture(fields)
    const { as, path } = own
    await as('user').post(path, { identifier: 'a', title: 'one' })
    expect(statusAndCode(await as('user').get(`${path}/a/history`))).toEqual([400, 'HISTORY_OFF'])
    await Bun.sleep(5)
    const before = new Date(now()).toISOString()
    await Bun.sleep(5)
    await as('admin').put('/blueprints/things', { history: true })
    expect(await rows(own)).toBe(0)
    await as('other').put(`${path}/a`, { title: 'two' })
    const { body } = await as('user').get(`${path}/a/history`)
    expect(body).toMatchObject([
      { version: 2, changes: { title: { from: 'one', to: 'two' } } },
      { version: 1, by: null },
    ])
    expect(statusAndCode(await as('user').get(`${path}/a?$asOf=${before}`))).toEqual([410, 'HISTORY_NOT_KEPT'])
    for (const option of ['$q=x', '$count=true', '$explain=true'])
      expect((await as('admin').get(`${path}?$asOf=${new Date(now()).toISOString()}&${option}`)).status).toBe(400)
    await as('admin').put('/blueprints/things', { history: false })
    await as('admin').put('/blueprints/things', { history: true })
    expect((await as('user').get(`${path}/a/history`)).body).toEqual([])
    await clean(own)
    expect(await rows(own)).toBe(0)
  })

  test('a history keeps at most so many versions and days, and a state that is lost is 410', async () => {
    const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user'), {
      history: { versions: 3, days: 30 },
    })
    const { as, path } = own
    const made = await as('user').post(path, { identifier: 'a', title: '0' })
    for (let n = 1; n < 40; n++) await as('user').put(`${path}/a`, { title: `${n}` })
    expect(await rows(own)).toBeLessThan(3 + 16)
    await clean(own)
    const { body } = await as('user').get(`${path}/a/history?$entity=true`)
    expect(body.map(({ entity }: { entity: { title: string } }) => entity.title)).toEqual(['39', '38', '37'])
    expect(body[2].changes).toEqual({})
    await Bun.sleep(2)
    const at = made.body.created
    expect(statusAndCode(await as('user').get(`${path}/a?$asOf=${at}`))).toEqual([410, 'HISTORY_NOT_KEPT'])
    expect(statusAndCode(await as('user').get(`${path}?$asOf=${at}`))).toEqual([410, 'HISTORY_NOT_KEPT'])
    moveClock(now() + 31 * DAY_MS)
    await clean(own)
    expect(await rows(own)).toBe(1)
    await as('user').delete(`${path}/a`)
    moveClock(now() + 31 * DAY_MS)
    await clean(own)
    expect(await rows(own)).toBe(0)
    moveClock()
  })

  test('a refused batch leaves no versions, and concurrent changes get a version each', async () => {
    const own = await createThingsFixture([...fields, { key: 'n', type: 'integer' }], undefined, { history: true })
    const { as, path } = own
    const operations = [
      { op: 'create', identifier: 'a', data: { title: 'x' } },
      { op: 'create', identifier: 'b', data: { n: 'no number' } },
    ]
    expect((await as('user').post(`${path}/batch`, { operations })).status).toBe(400)
    expect(await rows(own)).toBe(0)
    await as('user').post(path, { identifier: 'a' })
    await Promise.all(Array.from({ length: 20 }, (_, n) => as('user').put(`${path}/a`, { n })))
    const { body } = await as('user').get(`${path}/a/history?$limit=100`)
    expect(body).toHaveLength(21)
    const [latest] = body
    expect((await as('user').get(`${path}/a`)).body.n).toBe(latest.changes.n.to)
  })
})
