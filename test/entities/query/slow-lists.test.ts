import { afterAll, afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { config } from '../../../src/config'
import { logOutput, setLogLevel } from '../../../src/core/log'
import { createTestTenant } from '../../test-tenant'

setDefaultTimeout(30_000)

const original = config.ATOLL_SLOW_QUERY
const lines: Record<string, unknown>[] = []
const output = spyOn(logOutput, 'write')
let t: Awaited<ReturnType<typeof createTestTenant>>
beforeAll(async () => {
  t = await createTestTenant()
  const fields = ['name', 'city'].map((key) => ({ key, type: 'string', indexed: true }))
  await t.as('admin').post('/blueprints', { key: 'people', name: 'People', fields })
  for (let n = 0; n < 5; n++) await t.as('admin').post('/blueprints/people/entities', { name: `n${n}`, city: 'hidden' })
})
beforeEach(() => {
  lines.length = 0
  output.mockImplementation((line) => void lines.push(JSON.parse(line)))
  setLogLevel('warn')
})
afterEach(() => {
  config.ATOLL_SLOW_QUERY = original
  setLogLevel(config.ATOLL_LOG_LEVEL)
})
afterAll(() => output.mockRestore())

const list = async () => {
  const answer = await t.as('admin').get('/blueprints/people/entities?city=hidden&name[$gt]=hidden&$sort=-name')
  expect([answer.status, answer.body.length]).toEqual([200, 5])
  return lines.filter(({ event }) => event === 'slow-list')
}

test('a list that takes longer than ATOLL_SLOW_QUERY is logged with its plan, and never with values', async () => {
  config.ATOLL_SLOW_QUERY = 0.000_1
  // Later than the minute in which other tests may have used up the lines.
  let time = performance.now() + 120_000
  const clock = spyOn(performance, 'now')
  clock.mockImplementation(() => ++time)
  const found = await list().finally(() => clock.mockRestore())
  expect(found).toHaveLength(1)
  expect(found[0]).toMatchObject({
    ...{ level: 'warn', time: expect.any(String), event: 'slow-list', tenant: t.id, blueprint: 'people' },
    ms: expect.any(Number),
    plan: expect.objectContaining({ driver: expect.any(Object), left: expect.any(Array), order: ['-name'] }),
  })
  expect(JSON.stringify(lines)).not.toContain('hidden')
})

test('a quick list is not logged, and none is when the setting is 0', async () => {
  for (const setting of [60_000, 0]) {
    config.ATOLL_SLOW_QUERY = setting
    expect(await list()).toEqual([])
  }
})
