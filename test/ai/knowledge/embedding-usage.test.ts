import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { handleRequest } from '../../../src/gateway'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { chatMessage, createAiFixture } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, source, anonymous } = at
const path = `/ai/sources/${source}/storage`
afterAll(() => openai.stop())
beforeEach(() => openai.clear())
afterEach(() => changeSettings({ prices: null, budgets: null }))

const changeSettings = (metadata: object) => at.done(admin.put('/configurations/ai-configuration', { metadata }))
const listUsage = async (query = '') => at.done(admin.get(`/ai/usage${query}`))
const uploadText = (integrationId: string, content: string, client = user) =>
  client.post(`${path}/upload`, { integrationId, content })
/** Returns a text of n chunks. */
const makeParts = (n: number) => Array.from({ length: n }, (_, i) => `Part ${i}.\n\n${'z '.repeat(500)}`).join('\n\n')
const createReadingAgent = () => at.agent({ vectorStores: ['user'] })
const embeddingRow = (more: object = {}) => ({ kind: 'embedding', source, model: 'embedding-1', ...more })

describe('the usage of embeddings', () => {
  test('the upload of a file adds a usage row that only admins of the tenant can read and that contains none of its text', async () => {
    await changeSettings({ prices: { 'embedding-1': { prompt: 2, completion: 1_000 } } })
    const agent = await createReadingAgent()
    await at.done(uploadText(agent, 'Quinces are yellow.'))
    const all = await listUsage(`?integration=${agent}`)
    expect(all).toEqual([
      {
        ...embeddingRow({ integration: agent, user: at.users.user, workspace: null, thread: null }),
        ...{ _id: expect.any(String), created: expect.stringMatching(/Z$/), promptTokens: 4, completionTokens: 0 },
        ...{ cost: 0.000008, estimated: false, status: 'completed', durationMs: expect.any(Number) },
      },
    ])
    expect(JSON.stringify(all)).not.toContain('Quince')
    expect(statusAndCode(await user.get('/ai/usage?kind=embedding'))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await anonymous.get('/ai/usage?kind=embedding'))).toEqual([401, 'UNAUTHENTICATED'])
    expect((await (await createTestTenant()).as('admin').get('/ai/usage?kind=embedding')).body).toEqual([])
  })

  test('the upload of a large file adds one usage row per embedding request', async () => {
    const agent = await createReadingAgent()
    await at.done(uploadText(agent, makeParts(200)))
    const all = await listUsage(`?integration=${agent}`)
    expect(all).toHaveLength(openai.requests.length)
    const [sum] = await listUsage(`?integration=${agent}&groupBy=kind`)
    const sent = openai.requests.reduce((sum, { body }) => sum + (body.input.join(' ').length >> 2), 0)
    expect(sum).toMatchObject({ kind: 'embedding', promptTokens: sent, completionTokens: 0, count: all.length })
  })

  test('a chat with retrieval adds an embedding row and a completion row to the usage of its thread', async () => {
    const agent = await createReadingAgent()
    await at.done(uploadText(agent, 'The gate opens at five.'))
    const thread = await at.thread(agent)
    await at.chat(user, agent, { messages: [chatMessage('When does the gate open?')] }, thread)
    expect(await listUsage(`?thread=${thread}`)).toMatchObject([
      { kind: 'completion', model: 'model-1', promptTokens: 11, completionTokens: 7 },
      embeddingRow({ integration: agent, promptTokens: 6, completionTokens: 0, status: 'completed' }),
    ])
    expect(await listUsage(`?integration=${agent}&groupBy=model,kind&sort=model`)).toMatchObject([
      { model: 'embedding-1', kind: 'embedding', promptTokens: 11, count: 2 },
      { model: 'model-1', kind: 'completion', promptTokens: 11, count: 1 },
    ])
  })

  test.each([
    ['unauthorized', { status: 401 }, {}],
    ['rate limited', { status: 429 }, {}],
    ['no vectors', { body: '{"data":[]}' }, {}],
    ['no vectors, but reported usage', { body: '{"data":[],"usage":{"prompt_tokens":3}}' }, { promptTokens: 3 }],
    ['invalid JSON', { body: '{' }, {}],
  ])('a failed embedding request adds a usage row with the status failed: %s', async (_, plan, counted) => {
    const agent = await createReadingAgent()
    openai.reply(plan)
    expect((await uploadText(agent, 'Quinces are yellow.')).status).toBeGreaterThan(500)
    const estimated = !('promptTokens' in counted)
    const expected = { promptTokens: 5, ...counted, estimated, status: 'failed' }
    expect(await listUsage(`?integration=${agent}`)).toMatchObject([embeddingRow(expected)])
  })

  test('an aborted upload adds a usage row with the status aborted and an estimated token count', async () => {
    const agent = await createReadingAgent()
    const leaving = new AbortController()
    openai.reply({ hang: 0 })
    const headers = { host: `${at.id}.test`, 'x-api-key': at.tokens.user, 'content-type': 'application/json' }
    const body = JSON.stringify({ integrationId: agent, content: 'Quinces are yellow.' })
    const sent = handleRequest(
      new Request(`${at.origin}/api${path}/upload`, { method: 'POST', headers, body, signal: leaving.signal }),
    )
    await waitUntil(() => openai.requests.length)
    leaving.abort()
    await sent.catch(() => {})
    const [row] = await waitUntil(
      () => listUsage(`?integration=${agent}`),
      (rows) => rows.length > 0,
    )
    expect(row).toMatchObject(embeddingRow({ status: 'aborted', estimated: true, promptTokens: 5 }))
  })

  test('an upload to a source without embeddings adds no usage row', async () => {
    const agent = await at.agent({ sourceId: 'echo', vectorStores: ['user'] })
    await at.done(user.post('/ai/sources/echo/storage/upload', { integrationId: agent, content: 'Quinces.' }))
    expect(await listUsage(`?integration=${agent}`)).toEqual([])
  })
})

describe('budgets for embeddings', () => {
  const tokens = async () =>
    (await listUsage('?groupBy=user')).find(({ user }: { user: string }) => user === at.users.user).totalTokens
  const budget = (limit: number) =>
    changeSettings({ budgets: [{ scope: 'user', period: 'day', unit: 'tokens', limit }] })

  test('embeddings count against a budget, and a used-up budget rejects uploads and chats with 429 BUDGET_EXCEEDED', async () => {
    const agent = await createReadingAgent()
    await budget((await tokens()) + 5)
    expect((await uploadText(agent, 'Quinces are yellow, and pears are green.')).status).toBe(201)
    openai.clear()
    expect(statusAndCode(await uploadText(agent, 'Plums are blue.'))).toEqual([429, 'BUDGET_EXCEEDED'])
    expect(statusAndCode(await at.chat(user, agent))).toEqual([429, 'BUDGET_EXCEEDED'])
    expect(openai.requests).toEqual([])
    expect((await uploadText(agent, 'Plums are blue.', at.as('other'))).status).toBe(201)
  })

  test('a budget that runs out during a large upload stops it with 429 BUDGET_EXCEEDED, and nothing of the file is kept', async () => {
    const agent = await createReadingAgent()
    await budget((await tokens()) + 10)
    const refused = await uploadText(agent, makeParts(300))
    expect(statusAndCode(refused)).toEqual([429, 'BUDGET_EXCEEDED'])
    expect(openai.requests).toHaveLength(1)
    const left = `select 1 from knowledge_files f join vector_stores s on s._id = f.store where s.integration = ?`
    expect(await at.tenant.db.query(left, [agent])).toEqual([])
  })
})
