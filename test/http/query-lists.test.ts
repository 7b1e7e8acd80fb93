import { describe, expect, test } from 'bun:test'
import { toListText, toQueryString } from '../../client/src/queries'
import { readList, writeList } from '../../src/core/list-text'
import { createThingsFixture, identifiers } from '../entities/fixtures'
import { fileClient } from '../files/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'

const ODD = ['Smith, John', '007', '[x]', ' padded ', 'a"b']
const enc = encodeURIComponent

/** The ways to write several values that tear none. */
const exactForms = (name: string, values: string[]) => [
  `${name}=${enc(JSON.stringify(values))}`,
  values.map((value) => `${enc(`${name}[]`)}=${enc(value)}`).join('&'),
  values.map((value, n) => `${name}[${n}]=${enc(value)}`).join('&'),
]

describe('filters of entities', () => {
  const createOdd = async () => {
    const own = await createThingsFixture([
      { key: 'title', type: 'string' },
      { key: 'size', type: 'decimal' },
    ])
    for (const [n, title] of ODD.entries())
      await own.as('user').post(own.path, { identifier: `i${n}`, title, size: n ? '1.10' : '9007199254740993' })
    return own
  }

  test('a list of values may have commas, brackets, quotes and blanks in them', async () => {
    const own = await createOdd()
    const find = async (query: string) =>
      identifiers((await own.as('user').get(`${own.path}?$sort=identifier&${query}`)).body)
    for (const query of exactForms('title[$in]', ODD))
      expect(await find(query), query).toEqual(['i0', 'i1', 'i2', 'i3', 'i4'])
    for (const query of exactForms('title[$in]', ODD.slice(0, 2)))
      expect(await find(query), query).toEqual(['i0', 'i1'])
    for (const query of exactForms('title[$nin]', ODD.slice(1))) expect(await find(query), query).toEqual(['i0'])
    expect(await find(`title[$in]=${enc('Smith, John')}&title[$in]=007`)).toEqual(['i0', 'i1'])
    expect(await find('title[$in]=007,a"b')).toEqual(['i1', 'i4'])
    expect(await find('size[$in]=[9007199254740993]')).toEqual(['i0'])
    expect(await find('title[$in]=["007"]&title[$in]=nobody')).toEqual(['i1'])
    expect(await find('title[$in]=007&title[$in]=&title[$in]=undefined')).toEqual(['i1'])
    expect(await find('title[$in]=[]')).toEqual([])
  })

  test('options that take several names take them in every form', async () => {
    const own = await createOdd()
    const first = async (query: string) => (await own.as('user').get(`${own.path}?$limit=1&${query}`)).body[0]
    for (const query of [
      '$select=title,size',
      '$select=title&$select=size',
      '$select[]=title&$select[]=size',
      '$select=["title","size"]',
    ])
      expect(Object.keys((await first(query)).metadata).sort(), query).toEqual(['size', 'title'])
    for (const query of ['$sort=size,-identifier', '$sort=size&$sort=-identifier', '$sort=["size","-identifier"]'])
      expect((await first(query)).identifier, query).toBe('i4')
  })

  test('a value that begins like an array and is none is refused by the name of its parameter', async () => {
    const own = await createOdd()
    for (const [name, value] of [
      ['title[$in]', '[x'],
      ['title[$in]', '[{"a":1}]'],
      ['title[$nin]', '[null]'],
      ['title[$in]', '[["a"]]'],
      ['$select', '["title"'],
      ['$sort', '[1'],
      ['$populate', '["a",{}]'],
    ]) {
      const answer = await own.as('user').get(`${own.path}?${name}=${enc(value!)}`)
      expect([...statusAndCode(answer), answer.body.details[0].path], `${name}=${value}`).toEqual([
        400,
        'INVALID_INPUT',
        name,
      ])
      expect((await own.as('user').get(`${own.path}/export?${name}=${enc(value!)}`)).status).toBe(400)
    }
  })

  test('the typed client sends lists in an exact form', async () => {
    const own = await createOdd()
    const query = toQueryString({ title: { $in: ODD }, $sort: ['identifier'], $select: ['title', 'size'] })
    expect(identifiers((await own.as('user').get(`${own.path}${query}`)).body)).toEqual(['i0', 'i1', 'i2', 'i3', 'i4'])
    expect(toQueryString({ title: { $in: ['a', 'b'] } })).toBe('?title%5B%24in%5D=a%2Cb')
    expect(toQueryString({ x: 'a,b' })).toBe('?x%5B%24in%5D=%5B%22a%2Cb%22%5D')
    for (const values of [ODD, [''], ['a'], ['[1]', 'b'], ['ä', '1.10']]) {
      expect(readList(writeList(values))).toEqual(values)
      expect(toListText(values)).toBe(writeList(values))
    }
  })
})

test('lists of every area take values in every form', async () => {
  const own = await createTestTenant()
  const [admin, events] = [own.as('admin'), ['a,b', 'c', 'd']]
  for (const eventName of events)
    expect((await admin.post('/events', { source: 'shop', kind: 'x', eventName })).status).toBe(201)
  const workspaces = [['north, west'], ['south'], ['east']]
  for (const labels of workspaces)
    expect((await admin.post('/workspaces', { name: labels[0], labels })).status).toBe(201)
  const asked: [path: string, name: string, values: string[], key: string][] = [
    ['/events', 'eventName', ['a,b', 'c'], 'eventName'],
    ['/workspaces/all', 'labels', ['north, west', 'south'], 'labels'],
  ]
  for (const [path, name, values, key] of asked) {
    const find = async (query: string) =>
      (await admin.get(`${path}?${query}`)).body
        .flatMap((one: Record<string, unknown>) => one[key])
        .filter((one: string) => values.includes(one) || one === 'd' || one === 'east')
        .sort()
    const repeated = values.map((value) => `${name}=${enc(value)}`).join('&')
    for (const query of [...exactForms(name, values), repeated])
      expect(await find(query), `${path}?${query}`).toEqual(values)
    expect(await find(`${name}=${values[1]}`)).toEqual([values[1]])
    const answer = await admin.get(`${path}?${name}=${enc('[x')}`)
    expect([...statusAndCode(answer), answer.body.details[0].path]).toEqual([400, 'INVALID_INPUT', name])
  }
  for (const query of [
    'roles=admin&roles=plugin',
    'roles[]=admin&roles[]=plugin',
    'roles=["admin","plugin"]',
    'roles=admin,plugin',
  ])
    expect((await admin.get(`/users?select=username&sort=username&${query}`)).body.length, query).toBe(2)
  const selected = async (query: string) => Object.keys((await admin.get(`/users?limit=1&${query}`)).body[0]).sort()
  for (const query of ['select=username,email', 'select=username&select=email', 'select=["username","email"]'])
    expect(await selected(query), query).toEqual(['_id', 'email', 'username'])
  for (const path of ['/users', '/events', '/plugins', '/lambdas', '/integrations'])
    for (const query of ['sort=-created&sort=_id', 'sort=["-created"]'])
      expect((await admin.get(`${path}?${query}`)).status, `${path}?${query}`).toBe(200)
  expect(statusAndCode(await admin.get('/users?sort=[created'))).toEqual([400, 'INVALID_INPUT'])
})

test('filters that take one value take a comma as a part of it', async () => {
  const own = await createTestTenant()
  const admin = own.as('admin')
  const files = fileClient(own, own.tokens.admin)
  for (const name of ['a, b.txt', 'a', 'b.txt']) expect((await files.upload(name, name)).status).toBe(201)
  for (const name of ['north, west', 'north', 'west']) {
    const lambda = { name, code: 'export default () => 1' }
    expect((await admin.post('/lambdas', lambda)).status).toBe(201)
    expect((await admin.post('/blocks', { name, content: 'x' })).status).toBe(201)
    const source = { name, kind: 'http', metadata: { url: 'https://example.com' } }
    expect((await admin.post('/integration-sources', source)).status).toBe(201)
  }
  const namesOf = async (path: string) => (await admin.get(path)).body.map(({ name }: { name: string }) => name)
  expect(await namesOf(`/files?name=${enc('a, b.txt')}`)).toEqual(['a, b.txt'])
  for (const path of ['/lambdas', '/blocks', '/integration-sources'])
    expect(await namesOf(`${path}?name=${enc('north, west')}`), path).toEqual(['north, west'])
})
