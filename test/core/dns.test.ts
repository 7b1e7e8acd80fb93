// engine: sqlite
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { lookupTxtRecords } from '../../src/core/dns'
import { startDnsServer } from '../fakes/dns-server'

setDefaultTimeout(30_000)

let server: Awaited<ReturnType<typeof startDnsServer>>
const long = 'x'.repeat(250)
beforeAll(async () => {
  server = await startDnsServer(
    { 'only-addresses.test': [['192.0.2.1']] },
    {
      'two.test': ['a', 'b=c d'],
      'long.test': [long],
      'broken.test': 'broken',
      'silent.test': 'silent',
      'bare.test': [],
    },
  )
})
afterAll(() => server.stop())

test.each([
  ['two.test', ['a', 'b=c d']],
  ['TWO.test', ['a', 'b=c d']],
  ['long.test', [long.slice(0, 100), long.slice(100, 200), long.slice(200)]],
  ['bare.test', []],
  ['none.test', []],
] as const)('lookupTxtRecords returns the TXT records of %s', async (name, texts) => {
  expect(await lookupTxtRecords(name, [server.address])).toEqual([...texts])
})

test.each(['broken.test', 'silent.test'])(
  'lookupTxtRecords returns undefined for %s, whose server gives no valid answer',
  async (name) => {
    expect(await lookupTxtRecords(name, [server.address])).toBeUndefined()
  },
)
