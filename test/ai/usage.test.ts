import { afterAll, expect, test } from 'bun:test'
import { house, refusal } from '../house'
import { studio } from './kit'

const at = await studio()
const { user, admin, openai, main, chat } = at
afterAll(() => openai.stop())

const metadata = { prices: { 'model-1': { prompt: 1_000, completion: 0 } } }
await at.done(admin.put('/configurations/ai-configuration', { metadata }))
await chat()
await chat(at.as('other'))
openai.says({ status: 401 })
await chat()
const thread = await at.thread()
await chat(user, main, { model: 'model-2' }, thread)

const told = async (query = '') => at.done(admin.get(`/ai/usage${query}`))

test('admins see what each completion took', async () => {
  const rows = await told()
  expect(rows).toHaveLength(4)
  expect(rows[3]).toEqual({
    ...{ _id: expect.any(String), created: expect.any(String), integration: main, source: at.source, model: 'model-1' },
    ...{ user: at.users.user, workspace: null, thread: null, promptTokens: 11, completionTokens: 7, cost: 0.011 },
    ...{ estimated: false, status: 'completed', durationMs: expect.any(Number) },
  })
  expect(await told('?status=failed')).toMatchObject([{ estimated: true, status: 'failed' }])
  expect(await told(`?user=${at.users.other}`)).toHaveLength(1)
  expect(await told(`?thread=${thread}`)).toMatchObject([{ model: 'model-2', cost: 0 }])
  expect(await told('?from=2000-01-01&to=2001-01-01')).toEqual([])
  expect(await told('?sort=promptTokens&limit=1')).toHaveLength(1)
})

test('and what those took together that are alike', async () => {
  const today = new Date().toISOString().slice(0, 10)
  const used = { completions: 4, promptTokens: expect.any(Number), completionTokens: 21, cost: expect.any(Number) }
  expect(await told('?groupBy=day')).toEqual([{ group: today, ...used }])
  expect(await told('?groupBy=month')).toEqual([{ group: today.slice(0, 7), ...used }])
  expect(await told('?groupBy=model&status=completed')).toEqual([
    { group: 'model-1', completions: 2, promptTokens: 22, completionTokens: 14, cost: 0.022 },
    { group: 'model-2', completions: 1, promptTokens: 11, completionTokens: 7, cost: 0 },
  ])
  expect((await told('?groupBy=workspace')).map(({ group }: { group: null }) => group)).toEqual([null])
  expect(await told('?groupBy=user&limit=1')).toHaveLength(1)
})

test('what makes no sense is refused, and nobody else sees it', async () => {
  for (const query of ['?groupBy=prompt', '?from=never', '?sort=thread'])
    expect(refusal(await admin.get(`/ai/usage${query}`))).toEqual([400, 'INVALID_INPUT'])
  expect(refusal(await user.get('/ai/usage'))).toEqual([403, 'FORBIDDEN'])
  expect(refusal(await at.stranger.get('/ai/usage'))).toEqual([401, 'UNAUTHENTICATED'])
  expect((await (await house()).as('admin').get('/ai/usage')).body).toEqual([])
})
