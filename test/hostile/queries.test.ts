import { expect, test } from 'bun:test'
import { createThingsFixture, identifiers } from '../entities/fixtures'
import { statusAndCode } from '../test-tenant'
import { cpuMsSince } from './cpu-time'

const { as, path } = await createThingsFixture([
  { key: 'n', type: 'number' },
  { key: 'flag', type: 'boolean' },
  { key: 'data', type: 'object' },
  { key: 'numbers', type: 'number', multi: true },
])
const user = as('user')
const listBy = (search: string) => user.get(`${path}?${search}`)

test('an invalid number of thousands of digits in a query is refused with 400 INVALID_INPUT quickly', async () => {
  const digits = '1'.repeat(15_000)
  const start = process.cpuUsage()
  for (const search of [
    `n=${digits}x`,
    `n=${digits}.${digits}x`,
    `n[$gt]=-${digits}e`,
    `n[$in]=1,${digits}x`,
    `numbers=${digits}x`,
    `n=${'1'.repeat(500)}`,
    `$limit=${digits}x`,
    `$skip=${digits}`,
  ]) {
    const answer = await listBy(search)
    expect(statusAndCode(answer), search.slice(0, 30)).toEqual([400, 'INVALID_INPUT'])
    expect(JSON.stringify(answer.body).length).toBeLessThan(1_000)
  }
  expect((await listBy(`data.n=${digits}x`)).body).toEqual([])
  expect(cpuMsSince(start)).toBeLessThan(2_000)
})

test('a query with more than 20 filters is refused with 400 INVALID_INPUT', async () => {
  const filters = (count: number) => Array.from({ length: count }, (_, n) => `n[$ne]=${n}`).join('&')
  expect((await listBy(filters(20))).status).toBe(200)
  for (const count of [21, 2_000]) expect(statusAndCode(await listBy(filters(count)))).toEqual([400, 'INVALID_INPUT'])
})

test('a query with more than 500 list values or ten sort keys is refused with 400 INVALID_INPUT', async () => {
  const numbers = (count: number) => Array.from({ length: count }, (_, n) => n).join(',')
  for (const operator of ['$in', '$nin']) {
    expect((await listBy(`n[${operator}]=${numbers(500)}`)).status).toBe(200)
    expect(statusAndCode(await listBy(`n[${operator}]=${numbers(501)}`))).toEqual([400, 'INVALID_INPUT'])
  }
  const orders = ['n', '-n', '+n', 'flag', '-flag', '_id', '-_id', 'user', '-user', 'created', '-created']
  expect((await listBy(`$sort=${orders.slice(0, 10).map(encodeURIComponent)}`)).status).toBe(200)
  expect(statusAndCode(await listBy(`$sort=${orders.map(encodeURIComponent)}`))).toEqual([400, 'INVALID_INPUT'])
})

test('a property that is selected or sorted by thousands of times is treated as named once', async () => {
  await user.post(path, { identifier: 'picked', n: 7, flag: true })
  const picked = await listBy(`identifier=picked&$select=${'n,'.repeat(5_000)}n`)
  expect(picked.body).toEqual([{ _id: expect.any(String), identifier: 'picked', metadata: { n: 7 }, n: 7 }])
  expect((await listBy(`identifier=picked&$sort=${'n,'.repeat(5_000)}n`)).body).toHaveLength(1)
  const unknown = await listBy(`$select=${Array.from({ length: 3_000 }, (_, n) => `u${n}`)}`)
  expect([...statusAndCode(unknown), unknown.body.details.length]).toEqual([400, 'INVALID_INPUT', 100])
})

const ODD_NAMES = [
  'constructor',
  '__proto__',
  'toString',
  'hasOwnProperty',
  "a'b",
  'a"b',
  'a b',
  '$.a',
  'a.b..c',
  '.',
  '*',
  '?',
  '%',
  '🏝',
  '\ud7ff',
  '#-1',
  'x;drop table entities',
  'x'.repeat(256),
]

test('a filter finds values of an object by keys with odd names', async () => {
  for (const [index, name] of ODD_NAMES.entries()) {
    if (name === '__proto__') continue
    const identifier = `odd-${index}`
    const made = await user.post(path, { identifier, data: { [name]: `value ${index}` } })
    expect(made.status, name).toBe(201)
    const answer = await listBy(`${encodeURIComponent(`data.${name}`)}=value ${index}`)
    expect([answer.status, identifiers(answer.body)], name).toEqual([200, [identifier]])
  }
})

test('odd and malformed names in a query are answered with 200 or 400', async () => {
  const raw = ['%00', '%ff', '%ED%A0%80', '%', '%zz', '', '.'.repeat(5_000), 'a.'.repeat(5_000), 'x'.repeat(14_000)]
  const names = [...ODD_NAMES.map(encodeURIComponent), ...raw]
  const searches = names.flatMap((name) => [
    `data.${name}=1`,
    `data.${name}[$gt]=1`,
    `data.${name}[$exists]=true`,
    `data.${name}[$exists]=false`,
    `data.${name}[$nin]=a,1,true`,
    `${name}=1`,
    `n.${name}=1`,
    `n[${name}]=1`,
    `$sort=data.${name}`,
    `$sort=${name}`,
    `$select=${name}`,
    `$${name}=1`,
    `data.a=${name}`,
  ])
  for (const search of searches) {
    const answer = await listBy(search)
    expect(answer.status, search.slice(0, 60)).toBeOneOf([200, 400])
  }
})

test('a boolean filter refuses words other than booleans with 400 INVALID_INPUT', async () => {
  for (const value of ['constructor', 'toString', '__proto__', 'TRUE', 'yes', '2'])
    for (const search of [`flag=${value}`, `flag[$in]=true,${value}`, `flag[$exists]=${value}`, `$count=${value}`])
      expect(statusAndCode(await listBy(search)), search).toEqual([400, 'INVALID_INPUT'])
})
