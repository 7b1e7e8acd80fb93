// engine: sqlite
import { describe, expect, test } from 'bun:test'
import { isExact } from '../../src/core/exact-numbers'
import { createThingsFixture } from '../entities/fixtures'
import { callApi, statusAndCode } from '../test-tenant'

test.each([
  ['9007199254740991', true],
  ['9007199254740992', true],
  ['9007199254740993', false],
  ['-9007199254740993', false],
  ['9007199254740992.00', true],
  ['9007199254740993.01', false],
  ['123456789012345678901234567890', false],
  ['100000000000000000000', true],
  ['123456789012345680000', true],
  ['123456789012345683968', true],
  ['0.1234567890123456789', true],
  ['0000000000000000000000001', true],
  ['1e23', true],
  ['1e400', false],
  ['+9007199254740993', false],
  ['9007199254740993e0', false],
  ['900719925474099.3e1', false],
  ['90071992547409930e-1', false],
  ['9.007199254740992e15', true],
  ['1.7976931348623157e308', true],
])('the number %s is held exactly: %p', (written, exact) => expect(isExact(written)).toBe(exact))

test('every number that JavaScript writes is held exactly', () => {
  for (let n = 0; n < 20_000; n++) {
    const value = Math.random() * 10 ** (Math.random() * 40)
    expect(isExact(JSON.stringify(value)), `${value}`).toBe(true)
    expect(isExact(JSON.stringify(Math.round(value))), `${value}`).toBe(true)
  }
})

describe('numbers that would be changed', () => {
  const fields = [
    { key: 'amount', type: 'number' },
    { key: 'exact', type: 'decimal' },
    { key: 'more', type: 'object' },
  ]
  const sharedFixture = createThingsFixture(fields)
  const post = async (raw: string, more = '', type = 'application/json') => {
    const { origin, tokens, path } = await sharedFixture
    const headers = { 'x-api-key': tokens.admin, 'content-type': type }
    return callApi('POST', `${origin}/api${path}${more}`, { headers, raw })
  }
  const INVALID = [400, 'INVALID_INPUT']

  test('a number that would be changed gets 400 INVALID_INPUT, also in a large body, and exact ones are stored', async () => {
    for (const padding of ['', 'x'.repeat(100_000)]) {
      const write = (part: string) => `{"more":{"p":"${padding}","l":[1,{"a":"\\"9007199254740993"}]},${part}}`
      const refused = await post(write('"amount":9007199254740993'))
      expect(statusAndCode(refused)).toEqual(INVALID)
      expect(refused.body.details[0].message).toContain('9007199254740993')
      if (!padding) expect(refused.body.details[0].path).toBe('/amount')
      expect(statusAndCode(await post(write('"amount":1e400')))).toEqual(INVALID)
      expect((await post(write('"amount":9007199254740992,"exact":"9007199254740993.01"'))).body).toMatchObject({
        amount: 9007199254740992,
        exact: '9007199254740993.01',
      })
    }
    const nested = await post('{"more":{"a/b":[0,{"id":12345678901234567890}]}}')
    expect([...statusAndCode(nested), nested.body.details[0].path]).toEqual([...INVALID, '/more/a~1b/1/id'])
  })

  test('a number that would be changed is an error of its line in an import', async () => {
    const lines = '{"amount":1}\n{"amount":9007199254740993}'
    const { body } = await post(lines, '/import', 'application/x-ndjson')
    expect(body.errors.map(({ line }: { line: number }) => line)).toEqual([2])
    const cell = await post('more\n"{""id"":12345678901234567890}"\n', '/import', 'text/csv')
    expect(cell.body.errors.map(({ line }: { line: number }) => line)).toEqual([2])
    const csv = await post('amount\n1\n9007199254740993\n', '/import', 'text/csv')
    expect(csv.body.errors.map(({ line }: { line: number }) => line)).toEqual([3])
  })

  test('a filter with a number that would be changed gets 400 INVALID_INPUT, and a decimal compares every digit', async () => {
    const { origin, tokens, path } = await sharedFixture
    const list = (query: string) =>
      callApi('GET', `${origin}/api${path}?${query}`, { headers: { 'x-api-key': tokens.admin } })
    await post('{"amount":9007199254740992,"exact":"9007199254740993.01"}')
    for (const filter of ['amount', 'amount[$gt]', 'amount[$in]', 'amount[$ne]']) {
      const { status, body } = await list(`${filter}=9007199254740993`)
      expect([status, body.code, body.details[0].path]).toEqual([...INVALID, filter])
      expect(body.details[0].message).toStartWith('"9007199254740993" cannot be compared exactly')
    }
    expect(statusAndCode(await list('amount[$in]=[1,9007199254740993]'))).toEqual(INVALID)
    expect(statusAndCode(await list('amount=%2B9007199254740993e0'))).toEqual(INVALID)
    expect((await list('amount=9007199254740992&$limit=1')).body).toMatchObject([{ amount: 9007199254740992 }])
    expect((await list('amount[$gt]=1e20')).body).toEqual([])
    expect((await list('exact=9007199254740993.01&$limit=1')).body).toHaveLength(1)
    expect((await list('exact=9007199254740993')).body).toEqual([])
  })

  test('a message of the Model Context Protocol with such a number gets 400 INVALID_INPUT with its path', async () => {
    const { origin, tokens } = await sharedFixture
    const raw =
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"amount":9007199254740993}}}'
    const headers = { 'x-api-key': tokens.admin, 'content-type': 'application/json', accept: '*/*' }
    const { status, body } = await callApi('POST', `${origin}/api/mcp`, { headers, raw })
    expect([status, body.code, body.details[0].path]).toEqual([...INVALID, '/params/arguments/amount'])
  })
})

test('a computed decimal that is calculated from a number gets a warning', async () => {
  const { as } = await createThingsFixture([
    { key: 'price', type: 'decimal' },
    { key: 'total', type: 'decimal' },
  ])
  const { body } = await as('admin').put('/blueprints/things', { computed: { total: '$string($number(price) * 3)' } })
  expect(body.warnings).toMatchObject([{ path: '/computed/total', code: 'BINARY_ARITHMETIC' }])
})
