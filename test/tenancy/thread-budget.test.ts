import { expect, test } from 'bun:test'
import { ThreadBudget } from '../../src/tenancy/thread-budget'

test('ThreadBudget is exceeded by the tenant that used more than it, until the time since then has paid for it', async () => {
  const budget = new ThreadBudget(100)
  budget.charge('a', 60)
  expect(budget.isExceeded('a')).toBe(false)
  budget.charge('a', 45)
  expect([budget.isExceeded('a'), budget.isExceeded('b')]).toEqual([true, false])
  await Bun.sleep(60)
  expect(budget.isExceeded('a')).toBe(false)
})
