import { expect, test } from 'bun:test'
import type { Tenant } from '../../src/tenancy/tenants'
import { callApi } from '../test-tenant'
import { createThingsFixture, type Entity, importThings, nextPagePath } from './fixtures'

const FIELDS = [
  { key: 'n', type: 'integer' },
  { key: 'like', type: 'relation', target: 'things' },
]

/** Every third thing has an identifier of its own; those of the others are their ids. */
const toThing = (n: number) => (n % 3 ? { n } : { n, identifier: n % 2 ? `{thing ${n}`.replace(' ', '-') : `t${n}` })

async function createMixedFixture(count: number) {
  const own = await createThingsFixture(FIELDS)
  await importThings(
    own,
    Array.from({ length: count }, (_, n) => toThing(n)),
  )
  const user = own.as('user')
  for (let n = count; n < count + 6; n++) expect((await user.post(own.path, toThing(n))).status).toBe(201)
  const { body: all } = await user.get(`${own.path}?$sort=n&$limit=1000`)
  return { ...own, user, all: all as (Entity & { n: number })[] }
}

/** Stores each `_id` as earlier versions did. */
const storeAsEarlier = ({ write }: Tenant) =>
  write((tx) => tx.query('update entities set _id = identifier where _id is null'))

const ids = (entities: Entity[]) => entities.map(({ _id }) => _id)
const byId = (entities: Entity[]) => entities.toSorted((one, other) => (one._id < other._id ? -1 : 1))

test('an id that is the identifier is stored once, and every query finds it', async () => {
  const own = await createMixedFixture(40)
  const { all, user, path, tenant } = own
  expect(all.map(({ n }) => n)).toEqual(Array.from({ length: 46 }, (_, n) => n))
  for (const { _id, identifier, n } of all) expect(identifier === _id).toBe(n % 3 > 0)
  const stored = await tenant.db.query('select identifier from entities where _id is null')
  expect(stored).toHaveLength(all.filter(({ n }) => n % 3).length)

  const [first, second, third] = [all[0]!, all[1]!, all[3]!]
  const answers = async () => {
    for (const entity of all)
      for (const name of [entity._id, encodeURIComponent(entity.identifier)])
        expect((await user.get(`${path}/${name}`)).body).toEqual(entity)
    const list = async (query: string) => ids((await user.get(`${path}?${query}`)).body)
    for (const { _id } of [first, second, third]) {
      expect(await list(`_id=${_id}`)).toEqual([_id])
      expect(await list(`_id=${_id}&n[$gte]=0`)).toEqual([_id])
    }
    // An identifier is no id, and an id is no identifier unless it is both.
    expect(await list(`_id=${first.identifier}`)).toEqual([])
    expect(await list(`identifier=${first._id}`)).toEqual([])
    expect(await list(`identifier=${second._id}`)).toEqual([second._id])
    expect((await list(`_id[$in]=${ids([first, second, third])}&$sort=n`)).toSorted()).toEqual(
      ids([first, second, third]).toSorted(),
    )
    expect(await list(`_id[$nin]=${first._id},${second._id}&$limit=100`)).toHaveLength(44)
    expect(await list(`_id[$gt]=${second._id}&$sort=_id&$limit=100`)).toEqual(
      ids(byId(all).filter(({ _id }) => _id > second._id)),
    )
    expect(await list(`_id[$like]=%25${second._id.slice(20)}`)).toEqual([second._id])
    expect(await list(`_id[$like]=${third._id.slice(0, 35)}%25&$sort=_id`)).toContain(third._id)
    const paged: string[] = []
    for (let at: string | undefined = `${path}?$sort=-_id&$limit=7`; at; ) {
      const { body, headers } = await user.get(at)
      paged.push(...ids(body))
      at = nextPagePath(headers)
    }
    expect(paged).toEqual(ids(byId(all)).reverse())
    return [
      (await user.get(`${path}?$sort=identifier&$limit=100`)).body,
      (await user.get(`${path}/export?format=csv`)).body,
    ]
  }
  const lean = await answers()
  await storeAsEarlier(tenant)
  expect(await tenant.db.query('select 1 from entities where _id is null')).toEqual([])
  expect(await answers()).toEqual(lean)
})

test('no identifier is the id of another entity, whether that has an identifier of its own or not', async () => {
  const own = await createMixedFixture(4)
  const { all, user, path, tenant } = own
  const taken = async () => {
    for (const { _id } of all) {
      expect((await user.post(path, { identifier: _id, n: 1 })).body.code).toBe('IDENTIFIER_EXISTS')
      const raw = `{"n":1}\n${JSON.stringify({ n: 2, identifier: _id })}`
      const headers = { 'x-api-key': own.tokens.user }
      const { body } = await callApi('POST', `${own.origin}/api${path}/import?format=ndjson&atomic=true`, {
        headers,
        raw,
      })
      expect(body).toMatchObject({ imported: 0, failed: 1, errors: [{ line: 2, code: 'IDENTIFIER_EXISTS' }] })
    }
    expect(await own.rows('entities')).toBe(all.length)
  }
  await taken()
  await storeAsEarlier(tenant)
  await taken()
})

test('an entity whose id is its identifier is changed, referred to, populated and removed', async () => {
  const own = await createMixedFixture(4)
  const { all, user, path, tenant } = own
  for (const prepare of [() => Promise.resolve([] as unknown[][]), () => storeAsEarlier(tenant)]) {
    await prepare()
    for (const target of all.slice(0, 3)) {
      const { body: made } = await user.post(path, { n: 100, like: target.identifier })
      const { body: shown } = await user.get(`${path}/${made._id}?$populate=like`)
      expect(JSON.stringify(shown)).toContain(target._id)
      const { body: changed } = await user.put(`${path}/${made._id}`, { n: 101 })
      expect([changed._id, changed.identifier, changed.n]).toEqual([made._id, made._id, 101])
      expect((await user.delete(`${path}/${made._id}`)).body).toEqual({ success: true, identifier: made._id })
      expect((await user.get(`${path}/${made._id}`)).status).toBe(404)
    }
  }
})
