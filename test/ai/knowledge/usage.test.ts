import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { handle } from '../../../src/gateway'
import { house, refusal } from '../../house'
import { says, studio, until } from '../kit'

const at = await studio()
const { user, admin, openai, source, stranger } = at
const path = `/ai/sources/${source}/storage`
afterAll(() => openai.stop())
beforeEach(() => openai.clear())
afterEach(() => set({ prices: null, budgets: null }))

const set = (metadata: object) => at.done(admin.put('/configurations/ai-configuration', { metadata }))
const rows = async (query = '') => at.done(admin.get(`/ai/usage${query}`))
const send = (integrationId: string, content: string, client = user) =>
  client.post(`${path}/upload`, { integrationId, content })
/** So many chunks. */
const parts = (n: number) => Array.from({ length: n }, (_, i) => `Part ${i}.\n\n${'z '.repeat(500)}`).join('\n\n')
const reading = () => at.agent({ vectorStores: ['user'] })
const embedding = (more: object = {}) => ({ kind: 'embedding', source, model: 'embedding-1', ...more })

describe('what embeddings took', () => {
  test('of a file is told to admins, and nothing of what stands in it', async () => {
    await set({ prices: { 'embedding-1': { prompt: 2, completion: 1_000 } } })
    const agent = await reading()
    await at.done(send(agent, 'Quinces are yellow.'))
    const all = await rows(`?integration=${agent}`)
    expect(all).toEqual([
      {
        ...embedding({ integration: agent, user: at.users.user, workspace: null, thread: null }),
        ...{ _id: expect.any(String), created: expect.stringMatching(/Z$/), promptTokens: 4, completionTokens: 0 },
        ...{ cost: 0.000008, estimated: false, status: 'completed', durationMs: expect.any(Number) },
      },
    ])
    expect(JSON.stringify(all)).not.toContain('Quince')
    expect(refusal(await user.get('/ai/usage?kind=embedding'))).toEqual([403, 'FORBIDDEN'])
    expect(refusal(await stranger.get('/ai/usage?kind=embedding'))).toEqual([401, 'UNAUTHENTICATED'])
    expect((await (await house()).as('admin').get('/ai/usage?kind=embedding')).body).toEqual([])
  })

  test('of a large file is a row for each time that the model was asked', async () => {
    const agent = await reading()
    await at.done(send(agent, parts(200)))
    const all = await rows(`?integration=${agent}`)
    expect(all).toHaveLength(openai.asked.length)
    const [sum] = await rows(`?integration=${agent}&groupBy=kind`)
    const sent = openai.asked.reduce((sum, { body }) => sum + (body.input.join(' ').length >> 2), 0)
    expect(sum).toMatchObject({ kind: 'embedding', promptTokens: sent, completionTokens: 0, count: all.length })
  })

  test('of a question stands beside what the answer took, in its thread', async () => {
    const agent = await reading()
    await at.done(send(agent, 'The gate opens at five.'))
    const thread = await at.thread(agent)
    await at.chat(user, agent, { messages: [says('When does the gate open?')] }, thread)
    expect(await rows(`?thread=${thread}`)).toMatchObject([
      { kind: 'completion', model: 'model-1', promptTokens: 11, completionTokens: 7 },
      embedding({ integration: agent, promptTokens: 6, completionTokens: 0, status: 'completed' }),
    ])
    expect(await rows(`?integration=${agent}&groupBy=model,kind&sort=model`)).toMatchObject([
      { model: 'embedding-1', kind: 'embedding', promptTokens: 11, count: 2 },
      { model: 'model-1', kind: 'completion', promptTokens: 11, count: 1 },
    ])
  })

  test.each([
    ['refused', { status: 401 }, {}],
    ['too busy', { status: 429 }, {}],
    ['senseless', { body: '{"data":[]}' }, {}],
    ['senseless, but counted', { body: '{"data":[],"usage":{"prompt_tokens":3}}' }, { promptTokens: 3 }],
    ['no JSON', { body: '{' }, {}],
  ])('is a row whatever became of it: %s', async (_, plan, counted) => {
    const agent = await reading()
    openai.says(plan)
    expect((await send(agent, 'Quinces are yellow.')).status).toBeGreaterThan(500)
    const estimated = !('promptTokens' in counted)
    const expected = { promptTokens: 5, ...counted, estimated, status: 'failed' }
    expect(await rows(`?integration=${agent}`)).toMatchObject([embedding(expected)])
  })

  test('is a row where nobody waited for it, too', async () => {
    const agent = await reading()
    const leaving = new AbortController()
    openai.says({ hang: 0 })
    const headers = { host: `${at.id}.test`, 'x-api-key': at.tokens.user, 'content-type': 'application/json' }
    const body = JSON.stringify({ integrationId: agent, content: 'Quinces are yellow.' })
    const sent = handle(
      new Request(`${at.origin}/api${path}/upload`, { method: 'POST', headers, body, signal: leaving.signal }),
    )
    await until(() => openai.asked.length)
    leaving.abort()
    await sent.catch(() => {})
    const [row] = await until(async () => (await rows(`?integration=${agent}`)).slice(0, 1))
    expect(row).toMatchObject(embedding({ status: 'aborted', estimated: true, promptTokens: 5 }))
  })

  test('where nothing is embedded, there is no row', async () => {
    const agent = await at.agent({ sourceId: 'echo', vectorStores: ['user'] })
    await at.done(user.post('/ai/sources/echo/storage/upload', { integrationId: agent, content: 'Quinces.' }))
    expect(await rows(`?integration=${agent}`)).toEqual([])
  })
})

describe('budgets', () => {
  const tokens = async () =>
    (await rows('?groupBy=user')).find(({ user }: { user: string }) => user === at.users.user).totalTokens
  const budget = (limit: number) => set({ budgets: [{ scope: 'user', period: 'day', unit: 'tokens', limit }] })

  test('are used up by embeddings, and nothing more is embedded then', async () => {
    const agent = await reading()
    await budget((await tokens()) + 5)
    expect((await send(agent, 'Quinces are yellow, and pears are green.')).status).toBe(201)
    openai.clear()
    expect(refusal(await send(agent, 'Plums are blue.'))).toEqual([429, 'BUDGET_EXCEEDED'])
    expect(refusal(await at.chat(user, agent))).toEqual([429, 'BUDGET_EXCEEDED'])
    expect(openai.asked).toEqual([])
    expect((await send(agent, 'Plums are blue.', at.as('other'))).status).toBe(201)
  })

  test('end a large file in its midst, of which nothing is kept', async () => {
    const agent = await reading()
    await budget((await tokens()) + 10)
    const refused = await send(agent, parts(300))
    expect(refusal(refused)).toEqual([429, 'BUDGET_EXCEEDED'])
    expect(openai.asked).toHaveLength(1)
    const left = `select 1 from knowledge_files f join vector_stores s on s._id = f.store where s.integration = ?`
    expect(await at.tenant.db.ask(left, [agent])).toEqual([])
  })
})
