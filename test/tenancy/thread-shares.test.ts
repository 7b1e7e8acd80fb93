import { expect, test } from 'bun:test'
import { ThreadShares } from '../../src/tenancy/thread-shares'

const WINDOW_MS = 50

test.each([
  ['a tenant alone', { a: 40 }, []],
  ['two tenants with equal use', { a: 20, b: 19 }, []],
  ['a tenant that used three quarters', { a: 30, b: 10 }, ['a']],
  ['two tenants that left a third one little', { a: 20, b: 20, c: 2 }, ['a', 'b']],
] as [string, Record<string, number>, string[]][])(
  'for %s, ThreadShares finds those above an even share',
  (_, used, above) => {
    let time = 0
    const shares = new ThreadShares(() => time)
    for (const [tenant, ms] of Object.entries(used)) for (let n = 0; n < 2; n++) shares.note(tenant, ms / 2)
    expect(Object.keys(used).filter((tenant) => shares.isExceeded(tenant))).toEqual([])
    time += WINDOW_MS
    expect(Object.keys(used).filter((tenant) => shares.isExceeded(tenant))).toEqual(above)
  },
)

test('ThreadShares forgets a window once nothing has been used since', () => {
  let time = 0
  const shares = new ThreadShares(() => time)
  shares.note('a', 30)
  shares.note('b', 1)
  time += 2 * WINDOW_MS
  expect(shares.isExceeded('a')).toBe(false)
})
