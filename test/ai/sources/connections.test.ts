import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { statusAndCode } from '../../test-tenant'
import { chatMessage, createAiFixture, joinContent, parseEvents } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, main, chat } = at
afterAll(() => openai.stop())
beforeEach(() => openai.clear())

const countConnections = () => new Set(openai.requests.map(({ connection }) => connection)).size
const stream = { stream: true }

describe('connections to a provider', () => {
  test.each([true, false])('completions that follow each other share one (stream: %p)', async (stream) => {
    for (let n = 0; n < 3; n++) expect((await chat(user, main, { stream })).status).toBe(200)
    expect([openai.requests.length, countConnections()]).toEqual([3, 1])
  })

  test('concurrent completions have one each, and two tenants never share one', async () => {
    openai.own.always = { pieces: 4, pace: 5 }
    const answers = await Promise.all([1, 2, 3].map(() => chat(user, main, stream)))
    openai.own.always = {}
    expect(answers.map(({ body }) => joinContent(parseEvents(body).events))).toEqual(Array(3).fill('Hello there!'))
    expect(countConnections()).toBe(3)
    const other = await createAiFixture()
    await other.done(
      other.admin.put(`/integration-sources/${other.source}`, {
        metadata: { apiUrl: openai.url },
        authentication: { token: 'x' },
      }),
    )
    expect((await other.chat(other.user, other.main, stream)).status).toBe(200)
    await other.openai.stop()
    expect(countConnections()).toBe(4)
  })

  test('a connection that the provider has closed meanwhile is replaced, and nobody notices', async () => {
    for (let n = 0; n < 3; n++) {
      expect((await chat(user, main, stream)).status).toBe(200)
      openai.closeIdle()
    }
    expect([openai.requests.length, countConnections()]).toEqual([3, 3])
  })

  test('a provider that keeps its response open after [DONE] delays nobody, and its connection is not used again', async () => {
    openai.reply({ stay: true })
    const began = performance.now()
    expect(parseEvents((await chat(user, main, stream)).body).end).toBe('[DONE]')
    expect(performance.now() - began).toBeLessThan(900)
    expect((await chat(user, main, stream)).status).toBe(200)
    expect(countConnections()).toBe(2)
  })

  test('a provider that hangs up amid an answer is not asked again, and the next completion succeeds', async () => {
    expect((await chat(user, main, stream)).status).toBe(200)
    openai.reply({ cut: 2 })
    expect(parseEvents((await chat(user, main, stream)).body).events.at(-1)).toMatchObject({
      error: { code: 'AI_UPSTREAM_ERROR' },
    })
    expect((await chat(user, main, stream)).status).toBe(200)
    expect(openai.requests).toHaveLength(3)
  })
})

describe('the next completion knows', () => {
  const complete = (model: string) => user.post('/ai/v1/chat/completions', { model, messages: [chatMessage('Hello')] })

  test('a changed agent: its prompt, its roles, its name, whether it is active, and its end', async () => {
    const id = await at.agent({ name: 'Changing', systemPrompt: 'One.' })
    const change = (body: object) => at.done(admin.put(`/ai/agents/${id}`, body))
    expect((await complete('Changing')).status).toBe(200)
    await change({ systemPrompt: 'Two.' })
    expect((await complete('Changing')).status).toBe(200)
    expect(openai.last().body.messages[0].content).toBe('Two.')
    await change({ roles: ['nobody'] })
    expect([statusAndCode(await complete(id)), statusAndCode(await chat(user, id))]).toEqual([
      [404, 'MODEL_NOT_FOUND'],
      [403, 'FORBIDDEN'],
    ])
    await change({ roles: [], name: 'Renamed' })
    expect([(await complete('Changing')).status, (await complete('Renamed')).status]).toEqual([404, 200])
    await change({ active: false })
    expect([(await complete('Renamed')).status, (await chat(user, id)).status]).toEqual([404, 404])
    await change({ active: true })
    expect((await chat(user, id)).status).toBe(200)
    await at.done(admin.delete(`/ai/agents/${id}`))
    expect([(await complete(id)).status, (await chat(user, id)).status]).toEqual([404, 404])
  })

  test('a second agent of the same name, which makes the name ambiguous', async () => {
    await at.agent({ name: 'Twin' })
    expect((await complete('Twin')).status).toBe(200)
    await at.agent({ name: 'Twin' })
    expect((await complete('Twin')).status).toBe(400)
  })

  test('a changed source: its token, its model, and that the token is gone', async () => {
    const id = await at.agent({ model: undefined })
    const change = (body: object) => at.done(admin.put(`/integration-sources/${at.source}`, body))
    expect((await chat(user, id)).status).toBe(200)
    await change({ authentication: { token: 'sk-other' }, metadata: { model: 'model-2' } })
    expect((await chat(user, id)).status).toBe(200)
    expect([openai.last().headers.authorization, openai.last().body.model]).toEqual(['Bearer sk-other', 'model-2'])
    await change({ authentication: { token: null } })
    expect((await chat(user, id)).status).toBe(200)
    expect(openai.last().headers.authorization).toBeUndefined()
  })
})
