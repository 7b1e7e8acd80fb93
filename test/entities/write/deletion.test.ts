import { describe, expect, test } from 'bun:test'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture, identifiers } from '../fixtures'

const fields = [
  { key: 'title', type: 'string', indexed: true },
  { key: 'n', type: 'integer', unique: true },
  { key: 'tags', type: 'string', multi: true },
  { key: 'place', type: 'object' },
  { key: 'plain', type: 'string', indexed: false },
]
const toThing = (n: number) => ({
  ...{ identifier: `t${n}`, title: n % 2 ? 'odd' : 'even', n, tags: ['a', 'b', `c${n}`], plain: 'p' },
  place: { city: 'Ulm', geo: [n, 'x'] },
})
const createFilledFixture = async (count: number) => {
  const own = await createThingsFixture(fields, fullAccessRules('user', 'user'))
  for (let n = 0; n < count; n++) {
    const { status, body } = await own.as('user').post(own.path, toThing(n))
    expect([status, body.message]).toEqual([201, undefined])
  }
  return { ...own, user: own.as('user'), admin: own.as('admin') }
}
const ROWS_PER_THING = 8 // rows of the index: title, n, three tags, the city and two parts of geo

describe('DELETE of an entity', () => {
  test('a deleted entity leaves no index rows, and all other entities stay findable', async () => {
    const { user, path, rows } = await createFilledFixture(3)
    expect([await rows('entities'), await rows('entity_index')]).toEqual([3, 3 * ROWS_PER_THING])
    expect((await user.delete(`${path}/t1`)).body).toEqual({ success: true, identifier: 't1' })
    expect([await rows('entities'), await rows('entity_index')]).toEqual([2, 2 * ROWS_PER_THING])
    for (const query of ['', 'tags=a', 'place.city=Ulm', 'title=even', 'title[$ne]=odd', '$sort=n', '$sort=-n'])
      expect(identifiers((await user.get(`${path}?${query}`)).body).sort(), query).toEqual(['t0', 't2'])
    expect((await user.get(`${path}?title=odd`)).body).toEqual([])
    expect((await user.post(path, toThing(1))).status).toBe(201)
    expect(await rows('entity_index')).toBe(3 * ROWS_PER_THING)
  })

  test('an entity that was updated 20 times leaves no rows when it is deleted', async () => {
    const { user, admin, path, rows } = await createFilledFixture(2)
    for (let n = 0; n < 20; n++)
      await (n % 2 ? user : admin).put(`${path}/t1`, {
        title: n % 3 ? `title ${n}` : null,
        tags: n % 4 ? [`x${n}`, 'y', 'y'] : [],
        place: { [`part${n}`]: n, list: Array.from({ length: n }, (_, at) => ({ at })) },
        plain: `${n}`,
      })
    expect(await rows('entity_index')).toBe(ROWS_PER_THING + 1 + 1 + 2 + 1 + 19)
    await user.delete(`${path}/t1`)
    expect([await rows('entities'), await rows('entity_index')]).toEqual([1, ROWS_PER_THING])
  })

  test('a rejected create or update leaves no rows', async () => {
    const { user, path, rows } = await createFilledFixture(2)
    expect(statusAndCode(await user.post(path, { ...toThing(5), identifier: 't1' }))).toEqual([
      409,
      'IDENTIFIER_EXISTS',
    ])
    expect(statusAndCode(await user.post(path, { ...toThing(5), n: 1 }))).toEqual([409, 'UNIQUE_VIOLATION'])
    expect(statusAndCode(await user.put(`${path}/t0`, { ...toThing(5), n: 1 }))).toEqual([409, 'UNIQUE_VIOLATION'])
    expect(statusAndCode(await user.put(`${path}/t0`, { n: 'x' }))).toEqual([400, 'INVALID_INPUT'])
    expect([await rows('entities'), await rows('entity_index')]).toEqual([2, 2 * ROWS_PER_THING])
    expect((await user.get(`${path}?tags=c5`)).body).toEqual([])
  })

  test('one of several concurrent deletes of an entity succeeds, and the others get 404', async () => {
    const { user, path, rows } = await createFilledFixture(1)
    const answers = await Promise.all([1, 2, 3].map(() => user.delete(`${path}/t0`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404, 404])
    expect(await rows('entity_index')).toBe(0)
  })
})

describe('DELETE /all', () => {
  test('DELETE /all without the confirmation of the blueprint gets 400 INVALID_INPUT and deletes nothing', async () => {
    const { user, path, rows } = await createFilledFixture(2)
    for (const query of ['', '?confirm=', '?confirm=true', '?confirm=Things', '?confirm=other', '?title=odd']) {
      const answer = await user.delete(`${path}/all${query}`)
      expect([...statusAndCode(answer), answer.body.details[0].path], query).toEqual([400, 'INVALID_INPUT', 'confirm'])
      expect(answer.body.message).toContain('confirm=things')
    }
    expect(await rows('entities')).toBe(2)
  })

  test('DELETE /all deletes 450 entities and all of their index rows', async () => {
    const { user, path, rows } = await createFilledFixture(450)
    expect((await user.delete(`${path}/all?confirm=things`)).body).toEqual({ success: true, deletedCount: 450 })
    expect([await rows('entities'), await rows('entity_index')]).toEqual([0, 0])
    expect((await user.delete(`${path}/all?confirm=things`)).body).toEqual({ success: true, deletedCount: 0 })
  })

  test('DELETE /all with filters deletes the entities that a list with them finds', async () => {
    const { user, path, rows } = await createFilledFixture(260)
    const left = async () => Number((await user.get(`${path}?$count=true&$limit=1`)).headers.get('x-total-count'))
    for (const [query, count] of [
      ['title=neither', 0],
      ['n[$lt]=10', 10],
      ['title=odd&n[$lt]=20', 5],
      ['tags[$in]=c10,c12,c11', 2],
      ['place.geo=14', 1],
      ['plain[$ne]=p', 0],
      ['identifier=t16', 1],
      ['title=even', 121],
      ['', 120],
    ] as const) {
      const before = await left()
      expect((await user.delete(`${path}/all?confirm=things&${query}`)).body, query).toEqual({
        success: true,
        deletedCount: count,
      })
      expect(before - (await left()), query).toBe(count)
      expect(await rows('entity_index')).toBe((before - count) * ROWS_PER_THING)
    }
    expect(await left()).toBe(0)
  })

  test('DELETE /all with an invalid filter or with paging gets 400 INVALID_INPUT and deletes nothing', async () => {
    const { user, path, rows } = await createFilledFixture(2)
    for (const query of [
      'nothing=1',
      'n=x',
      'title[$bad]=odd',
      '$nonsense=1',
      'place=x',
      '$limit=1',
      '$skip=1',
      '$page=2',
    ])
      expect(statusAndCode(await user.delete(`${path}/all?confirm=things&${query}`)), query).toEqual([
        400,
        'INVALID_INPUT',
      ])
    expect(await rows('entities')).toBe(2)
  })

  test('DELETE /all keeps entities of other users in the scope user', async () => {
    const { as, user, path, rows } = await createFilledFixture(3)
    await as('other').post(path, toThing(7))
    expect((await user.delete(`${path}/all?confirm=things`)).body.deletedCount).toBe(3)
    expect([await rows('entities'), await rows('entity_index')]).toEqual([1, ROWS_PER_THING])
  })

  test('DELETE /all keeps entities of other blueprints', async () => {
    const { user, admin, path, rows } = await createFilledFixture(2)
    await admin.post('/blueprints', { key: 'others', name: 'O', fields, permissions: fullAccessRules('user', 'user') })
    for (const n of [0, 1]) expect((await user.post('/blueprints/others/entities', toThing(n))).status).toBe(201)
    await user.delete(`${path}/all?confirm=things`)
    expect((await user.get('/blueprints/others/entities?tags=a&$sort=n')).body).toHaveLength(2)
    expect(await rows('entity_index')).toBe(2 * ROWS_PER_THING)
  })
})

describe('DELETE of a blueprint', () => {
  test('DELETE of a blueprint with entities gets 409 BLUEPRINT_NOT_EMPTY and deletes nothing', async () => {
    const { admin, user, path, rows } = await createFilledFixture(2)
    expect(statusAndCode(await admin.delete('/blueprints/things'))).toEqual([409, 'BLUEPRINT_NOT_EMPTY'])
    expect((await user.get(`${path}?tags=a`)).body).toHaveLength(2)
    expect(await rows('entity_index')).toBe(2 * ROWS_PER_THING)
  })

  test('DELETE of a blueprint without entities succeeds without force', async () => {
    const { admin, path, rows } = await createFilledFixture(2)
    await admin.delete(`${path}/all?confirm=things`)
    expect((await admin.delete('/blueprints/things')).body).toEqual({ success: true })
    expect([await rows('entities'), await rows('entity_index')]).toEqual([0, 0])
  })

  test('DELETE of a blueprint with force=true deletes the entities of all users, and those of no other blueprint', async () => {
    const { admin, as, user, path, rows } = await createFilledFixture(230)
    await as('other').post(path, toThing(500))
    await admin.post('/blueprints', { key: 'others', name: 'O', fields, permissions: fullAccessRules('user', 'user') })
    await user.post('/blueprints/others/entities', toThing(0))
    expect((await admin.delete('/blueprints/things?force=true')).body).toEqual({ success: true })
    expect([await rows('entities'), await rows('entity_index')]).toEqual([1, ROWS_PER_THING])
    expect(statusAndCode(await user.get(path))).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
    expect((await user.get('/blueprints/others/entities?tags=a')).body).toHaveLength(1)
  })

  test('DELETE of a blueprint with an outdated If-Match gets 412 VERSION_MISMATCH, even with force=true', async () => {
    const { admin, rows } = await createFilledFixture(2)
    const etag = (await admin.get('/blueprints/things')).headers.get('etag')!
    await admin.put('/blueprints/things', { name: 'Changed' })
    const answer = await admin.delete('/blueprints/things?force=true', { 'if-match': etag })
    expect(statusAndCode(answer)).toEqual([412, 'VERSION_MISMATCH'])
    expect(await rows('entities')).toBe(2)
  })
})
