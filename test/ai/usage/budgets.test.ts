import { afterAll, afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { reserveBudget } from '../../../src/ai/usage/budgets'
import { moveClock } from '../../../src/core/clock'
import { handleRequest } from '../../../src/gateway'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { chatMessage, createAiFixture, toolCalls } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, main, chat, tenant } = at
const otherUser = at.as('other')
afterAll(() => openai.stop())
afterEach(() => moveClock())

type Budget = { scope: string; period: string; unit: string; limit: number }
const budget = (limit: number, more: Partial<Budget> = {}) => ({
  scope: 'tenant',
  period: 'day',
  unit: 'tokens',
  limit,
  ...more,
})
const putSettings = (metadata: object) => admin.put('/configurations/ai-configuration', { metadata })
const setBudgets = (...budgets: object[]) => at.done(putSettings({ budgets }))
const BUDGET_EXCEEDED = [429, 'BUDGET_EXCEEDED']
const reportedUsage = (prompt_tokens: number, completion_tokens = 0) => ({
  usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
})

// Each test has its own year, so that earlier usage does not count.
let year = 2040
beforeEach(() => {
  openai.clear()
  moveClock(Date.parse(`${year++}-05-15T12:00:00Z`))
})

describe('a budget', () => {
  test('a used-up budget rejects completions with 429 BUDGET_EXCEEDED and Retry-After until its period ends', async () => {
    await setBudgets(budget(18, { period: 'day' }))
    expect((await chat()).status).toBe(200)
    const refused = await chat()
    expect(statusAndCode(refused)).toEqual(BUDGET_EXCEEDED)
    expect(refused.body.details).toEqual({
      ...{
        scope: 'tenant',
        period: 'day',
        unit: 'tokens',
        limit: 18,
        used: 18,
        until: `${year - 1}-05-16T00:00:00.000Z`,
      },
    })
    const wait = Number(refused.headers.get('retry-after'))
    expect(wait).toBeGreaterThan(43_100)
    expect(wait).toBeLessThanOrEqual(43_200)
    expect(openai.requests).toHaveLength(1)
    expect(statusAndCode(await chat(user, main, { stream: true }))).toEqual(BUDGET_EXCEEDED)
    const today = await at.done(admin.get(`/ai/usage?from=${year - 1}-05-15`))
    expect(today).toHaveLength(1)
    moveClock(Date.parse(`${year - 1}-05-16T00:00:00Z`))
    expect((await chat()).status).toBe(200)
  })

  test('a monthly budget lasts until the first day of the next month', async () => {
    await setBudgets(budget(18, { period: 'month' }))
    expect((await chat()).status).toBe(200)
    moveClock(Date.parse(`${year - 1}-05-31T23:59:00Z`))
    const refused = await chat()
    expect([statusAndCode(refused), refused.body.details.until]).toEqual([
      BUDGET_EXCEEDED,
      `${year - 1}-06-01T00:00:00.000Z`,
    ])
    moveClock(Date.parse(`${year - 1}-06-01T00:00:00Z`))
    expect((await chat()).status).toBe(200)
  })

  test('a user budget counts the completions of each user separately, streamed or not', async () => {
    await setBudgets(budget(18, { scope: 'user' }))
    expect((await chat(user, main, { stream: true })).status).toBe(200)
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
    expect((await chat(otherUser)).status).toBe(200)
    expect(statusAndCode(await chat(otherUser))).toEqual(BUDGET_EXCEEDED)
  })

  test('a workspace budget counts the completions in the active workspace, and none outside workspaces', async () => {
    const { _id } = await at.done(user.post('/workspaces', { name: 'Office' }))
    await at.done(user.post(`/workspaces/${_id}/activate`))
    await setBudgets(budget(30, { scope: 'workspace' }))
    expect([(await chat()).status, (await chat()).status]).toEqual([200, 200])
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
    expect([(await chat(otherUser)).status, (await chat(otherUser)).status, (await chat(otherUser)).status]).toEqual([
      200, 200, 200,
    ])
    await at.done(user.delete(`/workspaces/${_id}`))
  })

  test('a cost budget is compared with the cost at the configured prices', async () => {
    await at.done(putSettings({ prices: { '*': { prompt: 1, completion: 2 } } }))
    await setBudgets(budget(0.003, { unit: 'cost' }))
    openai.reply(reportedUsage(1_000, 999), reportedUsage(1, 0), reportedUsage(5, 5))
    expect((await chat()).status).toBe(200)
    expect((await chat()).status).toBe(200)
    expect((await chat()).status).toBe(200)
    const refused = await chat()
    expect(statusAndCode(refused)).toEqual(BUDGET_EXCEEDED)
    expect(refused.body.details).toMatchObject({ unit: 'cost', limit: 0.003, used: 0.003014 })
  })

  test('a budget of zero allows nothing, and several budgets apply together', async () => {
    await setBudgets(budget(1e9), budget(0, { scope: 'user', period: 'month', unit: 'cost' }))
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
    await setBudgets()
    expect((await chat()).status).toBe(200)
  })

  test('a budget counts failed and broken-off completions', async () => {
    await setBudgets(budget(1))
    openai.reply({ cut: 2 })
    await chat(user, main, { stream: true })
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
  })

  test('a budget also counts completions of webhooks and of agents called as tools', async () => {
    const target = { kind: 'ai', sourceId: at.source, model: 'expert' }
    const { _id: hook } = await at.made('/integrations', { trigger: { kind: 'webhook' }, target })
    const trigger = { kind: 'tool', name: 'expert', description: 'Knows.' }
    const { _id: tool } = await at.made('/integrations', { trigger, target })
    const callingAgent = await at.agent({ tools: [tool] })
    await setBudgets(budget(18))
    expect((await user.post(`/webhooks/${hook}`, { message: 'Hello' })).status).toBe(200)
    expect(statusAndCode(await user.post(`/webhooks/${hook}`, { message: 'Hello' }))).toEqual(BUDGET_EXCEEDED)
    await setBudgets(budget(19))
    openai.reply(toolCalls(['expert', { message: 'Hello' }]), {}, { text: 'I asked.' })
    expect((await chat(user, callingAgent)).status).toBe(200)
    expect(openai.requests.map(({ body }) => body.model)).toEqual(['expert', 'model-1', 'expert', 'model-1'])
    openai.clear()
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
    expect(openai.requests).toEqual([])
  })

  const readSpentTokens = async () => {
    const rows = await tenant.db.query('select tokens from ai_spent where _id = ?', [`${year - 1}-05-15 tenant `])
    return Number(rows[0]?.[0] ?? 0)
  }

  test('a budget is not exceeded by concurrent completions: running ones count with their maximum, and others get 429 BUDGET_EXCEEDED', async () => {
    await setBudgets(budget(400), budget(1e6, { scope: 'user' }))
    const half = Array.from({ length: 25 }, () => chat(user, main, { max_tokens: 80 }))
    const others = Array.from({ length: 25 }, () => chat(user, main, { max_tokens: 80, stream: true }))
    const all = await Promise.all([...half, ...others])
    const passed = all.filter(({ status }) => status === 200).length
    expect(passed).toBeGreaterThan(1)
    expect(passed).toBeLessThan(6)
    const refused = all.filter(({ status }) => status !== 200)
    expect(refused.map(statusAndCode)).toEqual(refused.map(() => BUDGET_EXCEEDED))
    expect(refused[0]!.headers.get('retry-after')).toBe('5')
    expect(refused[0]!.body.details).toMatchObject({ scope: 'tenant', limit: 400, running: expect.any(Number) })
    expect(openai.requests).toHaveLength(passed)
    expect(await readSpentTokens()).toBe(passed * 18)
    // Reservations end with their completions.
    expect((await chat()).status).toBe(200)
  })

  test.each([false, true])(
    'a budget releases the reservation of a failed, an invalid and an aborted completion (stream: %p)',
    async (stream) => {
      await setBudgets(budget(1_000))
      const bad = { messages: [chatMessage('x', 'system')] }
      for (const [body, plan, status] of [
        [{ stream }, { status: 401 }, 502],
        [{ stream, ...bad }, undefined, 400],
      ] as const) {
        if (plan) openai.reply(plan)
        for (let n = 0; n < 2; n++)
          expect((await chat(user, main, n ? { stream } : body)).status).toBe(n ? 200 : status)
      }
      const leaving = new AbortController()
      openai.reply({ hang: 0 })
      const body = JSON.stringify({ messages: [chatMessage('Hello')], stream })
      const headers = { host: `${at.id}.test`, 'x-api-key': at.tokens.user, 'content-type': 'application/json' }
      const url = `${at.origin}/api/ai/${main}/chat-completion`
      const before = openai.requests.length
      const left = handleRequest(new Request(url, { method: 'POST', headers, body, signal: leaving.signal }))
      await waitUntil(() => openai.requests.length > before)
      expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
      leaving.abort()
      await left.catch(() => {})
      await waitUntil(async () => (await chat()).status === 200)
    },
  )

  test('a budget may be exceeded by one completion with the agents it calls, and rejects the next with 429 BUDGET_EXCEEDED', async () => {
    await setBudgets(budget(2))
    const trigger = { kind: 'tool', name: 'helper', description: 'Helps.' }
    const target = { kind: 'ai', sourceId: at.source, model: 'helper' }
    const { _id: tool } = await at.made('/integrations', { trigger, target })
    openai.reply(toolCalls(['helper', { message: 'Hello' }]), {}, { text: 'I asked.' })
    expect((await chat(user, await at.agent({ tools: [tool] }))).status).toBe(200)
    expect(openai.requests.map(({ body }) => body.model)).toEqual(['model-1', 'helper', 'model-1'])
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
  })

  test('a cost budget is not exceeded by concurrent uploads that are embedded', async () => {
    await at.done(putSettings({ prices: { '*': { prompt: 1_000, completion: 1_000 } } }))
    await setBudgets(budget(0.02, { unit: 'cost' }))
    const agent = await at.agent({ vectorStores: ['user'] })
    const content = 'Quinces are yellow.'
    const send = () => user.post(`/ai/sources/${at.source}/storage/upload`, { integrationId: agent, content })
    await at.done(
      user.post(`/ai/sources/${at.source}/storage`, { integrationId: agent, scope: 'user', subjectId: at.users.user }),
    )
    const all = await Promise.all(Array.from({ length: 20 }, send))
    const passed = all.filter(({ status }) => status === 201).length
    expect(passed).toBeGreaterThan(1)
    expect(passed).toBeLessThan(7)
    expect(openai.requests).toHaveLength(passed)
    await at.done(putSettings({ prices: {} }))
  })

  test('a budget applies to one tenant only', async () => {
    await setBudgets(budget(0))
    const otherTenant = await createTestTenant()
    const agent = (await otherTenant.as('admin').post('/ai/agents', { name: 'x', sourceId: 'echo' })).body._id
    expect(
      (await otherTenant.as('user').post(`/ai/${agent}/chat-completion`, { messages: [chatMessage('x')] })).status,
    ).toBe(200)
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
  })

  test('the check of several budgets takes a single query', async () => {
    await setBudgets(budget(1e9), budget(1e9, { scope: 'user', period: 'month' }), budget(1e9, { scope: 'user' }))
    await chat()
    const select = spyOn(tenant.db, 'select')
    await reserveBudget({ ...tenant, actor: { user: at.users.user } as never })
    expect(select).toHaveBeenCalledTimes(1)
    select.mockRestore()
  })
})

test.each([
  ['budgets that are not a list', { budgets: {} }],
  ['an unknown scope', { budgets: [budget(1, { scope: 'planet' })] }],
  ['an unknown period', { budgets: [budget(1, { period: 'year' })] }],
  ['an unknown unit', { budgets: [budget(1, { unit: 'words' })] }],
  ['a negative limit', { budgets: [budget(-1)] }],
  ['no limit', { budgets: [{ scope: 'tenant', period: 'day', unit: 'tokens' }] }],
  ['a limit in quotes', { budgets: [{ ...budget(1), limit: '10' }] }],
  ['more than 20 budgets', { budgets: Array.from({ length: 21 }, () => budget(1)) }],
])('PUT ai-configuration rejects invalid budgets with 400 INVALID_INPUT: %s', async (_, metadata) => {
  const refused = await putSettings(metadata)
  expect(statusAndCode(refused)).toEqual([400, 'INVALID_INPUT'])
  expect(refused.body.details[0].path).toStartWith('/metadata/budgets')
})

test('PUT ai-configuration accepts budgets from admins only, and others get 401 or 403', async () => {
  const body = { metadata: { budgets: [] } }
  expect(statusAndCode(await user.put('/configurations/ai-configuration', body))).toEqual([403, 'FORBIDDEN'])
  expect(statusAndCode(await at.anonymous.put('/configurations/ai-configuration', body))).toEqual([
    401,
    'UNAUTHENTICATED',
  ])
  expect(statusAndCode(await user.get('/configurations/ai-configuration'))).toEqual([403, 'FORBIDDEN'])
})
