import { afterAll, afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { reserveBudget } from '../../../src/ai/usage/budgets'
import { moveClock } from '../../../src/core/clock'
import { handleRequest } from '../../../src/gateway'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { chatMessage, createAiFixture, toolCalls, waitUntil } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, main, chat, tenant } = at
const other = at.as('other')
afterAll(() => openai.stop())
afterEach(() => moveClock(Date.now()))

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

// Each test has days of its own, so what was used before is no matter.
let year = 2040
beforeEach(() => {
  openai.clear()
  moveClock(Date.parse(`${year++}-05-15T12:00:00Z`))
})

describe('a budget', () => {
  test('refuses what comes after it is used up, with how long that lasts; the model is not asked', async () => {
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
    expect(openai.asked).toHaveLength(1)
    expect(statusAndCode(await chat(user, main, { stream: true }))).toEqual(BUDGET_EXCEEDED)
    const today = await at.done(admin.get(`/ai/usage?from=${year - 1}-05-15`))
    expect(today).toHaveLength(1)
    moveClock(Date.parse(`${year - 1}-05-16T00:00:00Z`))
    expect((await chat()).status).toBe(200)
  })

  test('of a month lasts until the next one, whatever the days', async () => {
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

  test('of users is for each of them, also for those who stream', async () => {
    await setBudgets(budget(18, { scope: 'user' }))
    expect((await chat(user, main, { stream: true })).status).toBe(200)
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
    expect((await chat(other)).status).toBe(200)
    expect(statusAndCode(await chat(other))).toEqual(BUDGET_EXCEEDED)
  })

  test('of workspaces is for those who are in one, together', async () => {
    const { _id } = await at.done(user.post('/workspaces', { name: 'Office' }))
    await at.done(user.post(`/workspaces/${_id}/activate`))
    await setBudgets(budget(30, { scope: 'workspace' }))
    expect([(await chat()).status, (await chat()).status]).toEqual([200, 200])
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
    expect([(await chat(other)).status, (await chat(other)).status, (await chat(other)).status]).toEqual([
      200, 200, 200,
    ])
    await at.done(user.delete(`/workspaces/${_id}`))
  })

  test('of costs is in the currency of the prices', async () => {
    await at.done(putSettings({ prices: { '*': { prompt: 1, completion: 2 } } }))
    await setBudgets(budget(0.003, { unit: 'cost' }))
    openai.says(reportedUsage(1_000, 999), reportedUsage(1, 0), reportedUsage(5, 5))
    expect((await chat()).status).toBe(200)
    expect((await chat()).status).toBe(200)
    expect((await chat()).status).toBe(200)
    const refused = await chat()
    expect(statusAndCode(refused)).toEqual(BUDGET_EXCEEDED)
    expect(refused.body.details).toMatchObject({ unit: 'cost', limit: 0.003, used: 0.003014 })
  })

  test('of nothing allows nothing; several hold all together', async () => {
    await setBudgets(budget(1e9), budget(0, { scope: 'user', period: 'month', unit: 'cost' }))
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
    await setBudgets()
    expect((await chat()).status).toBe(200)
  })

  test('is used up by failures and by what broke off, too', async () => {
    await setBudgets(budget(1))
    openai.says({ cut: 2 })
    await chat(user, main, { stream: true })
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
  })

  test('is about integrations that others than callers run: by webhooks, and as tools of agents', async () => {
    const target = { kind: 'ai', sourceId: at.source, model: 'expert' }
    const { _id: hook } = await at.made('/integrations', { trigger: { kind: 'webhook' }, target })
    const trigger = { kind: 'tool', name: 'expert', description: 'Knows.' }
    const { _id: tool } = await at.made('/integrations', { trigger, target })
    const asker = await at.agent({ tools: [tool] })
    await setBudgets(budget(18))
    expect((await user.post(`/webhooks/${hook}`, { message: 'Hello' })).status).toBe(200)
    expect(statusAndCode(await user.post(`/webhooks/${hook}`, { message: 'Hello' }))).toEqual(BUDGET_EXCEEDED)
    await setBudgets(budget(19))
    openai.says(toolCalls(['expert', { message: 'Hello' }]), {}, { text: 'I asked.' })
    expect((await chat(user, asker)).status).toBe(200)
    expect(openai.asked.map(({ body }) => body.model)).toEqual(['expert', 'model-1', 'expert', 'model-1'])
    openai.clear()
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
    expect(openai.asked).toEqual([])
  })

  const taken = async () => {
    const rows = await tenant.db.query('select tokens from ai_spent where _id = ?', [`${year - 1}-05-15 tenant `])
    return Number(rows[0]?.[0] ?? 0)
  }

  test('is not passed by many who ask at once: what is being answered counts as what it may take', async () => {
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
    expect(openai.asked).toHaveLength(passed)
    expect(await taken()).toBe(passed * 18)
    // Nothing of it counts any more when it is over.
    expect((await chat()).status).toBe(200)
  })

  test.each([false, true])('counts nothing of what has failed, or was never asked (stream: %p)', async (stream) => {
    await setBudgets(budget(1_000))
    const bad = { messages: [chatMessage('x', 'system')] }
    for (const [body, plan, status] of [
      [{ stream }, { status: 401 }, 502],
      [{ stream, ...bad }, undefined, 400],
    ] as const) {
      if (plan) openai.says(plan)
      for (let n = 0; n < 2; n++) expect((await chat(user, main, n ? { stream } : body)).status).toBe(n ? 200 : status)
    }
    const leaving = new AbortController()
    openai.says({ hang: 0 })
    const body = JSON.stringify({ messages: [chatMessage('Hello')], stream })
    const headers = { host: `${at.id}.test`, 'x-api-key': at.tokens.user, 'content-type': 'application/json' }
    const url = `${at.origin}/api/ai/${main}/chat-completion`
    const before = openai.asked.length
    const left = handleRequest(new Request(url, { method: 'POST', headers, body, signal: leaving.signal }))
    await waitUntil(() => openai.asked.length > before)
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
    leaving.abort()
    await left.catch(() => {})
    await waitUntil(async () => (await chat()).status === 200)
  })

  test('lets one question be passed by itself, and by the agents that it leads to', async () => {
    await setBudgets(budget(2))
    const trigger = { kind: 'tool', name: 'helper', description: 'Helps.' }
    const target = { kind: 'ai', sourceId: at.source, model: 'helper' }
    const { _id: tool } = await at.made('/integrations', { trigger, target })
    openai.says(toolCalls(['helper', { message: 'Hello' }]), {}, { text: 'I asked.' })
    expect((await chat(user, await at.agent({ tools: [tool] }))).status).toBe(200)
    expect(openai.asked.map(({ body }) => body.model)).toEqual(['model-1', 'helper', 'model-1'])
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
  })

  test('of costs is not passed at once either, also by those who embed', async () => {
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
    expect(openai.asked).toHaveLength(passed)
    await at.done(putSettings({ prices: {} }))
  })

  test('is of one tenant', async () => {
    await setBudgets(budget(0))
    const one = await createTestTenant()
    const agent = (await one.as('admin').post('/ai/agents', { name: 'x', sourceId: 'echo' })).body._id
    expect((await one.as('user').post(`/ai/${agent}/chat-completion`, { messages: [chatMessage('x')] })).status).toBe(
      200,
    )
    expect(statusAndCode(await chat())).toEqual(BUDGET_EXCEEDED)
  })

  test('is looked up and not added up: it reads one statement, however many rows there are', async () => {
    await setBudgets(budget(1e9), budget(1e9, { scope: 'user', period: 'month' }), budget(1e9, { scope: 'user' }))
    await chat()
    const select = spyOn(tenant.db, 'select')
    await reserveBudget({ ...tenant, actor: { user: at.users.user } as never })
    expect(select).toHaveBeenCalledTimes(1)
    select.mockRestore()
  })
})

test.each([
  ['no list', { budgets: {} }],
  ['another scope', { budgets: [budget(1, { scope: 'planet' })] }],
  ['another period', { budgets: [budget(1, { period: 'year' })] }],
  ['another unit', { budgets: [budget(1, { unit: 'words' })] }],
  ['less than nothing', { budgets: [budget(-1)] }],
  ['no limit', { budgets: [{ scope: 'tenant', period: 'day', unit: 'tokens' }] }],
  ['a text', { budgets: [{ ...budget(1), limit: '10' }] }],
  ['too many', { budgets: Array.from({ length: 21 }, () => budget(1)) }],
])('budgets are refused where they make no sense: %s', async (_, metadata) => {
  const refused = await putSettings(metadata)
  expect(statusAndCode(refused)).toEqual([400, 'INVALID_INPUT'])
  expect(refused.body.details[0].path).toStartWith('/metadata/budgets')
})

test('budgets are set by admins', async () => {
  const body = { metadata: { budgets: [] } }
  expect(statusAndCode(await user.put('/configurations/ai-configuration', body))).toEqual([403, 'FORBIDDEN'])
  expect(statusAndCode(await at.stranger.put('/configurations/ai-configuration', body))).toEqual([
    401,
    'UNAUTHENTICATED',
  ])
  expect(statusAndCode(await user.get('/configurations/ai-configuration'))).toEqual([403, 'FORBIDDEN'])
})
