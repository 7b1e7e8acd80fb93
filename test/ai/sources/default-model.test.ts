import { afterAll, expect, test } from 'bun:test'
import { createAiFixture } from '../fixtures'

const at = await createAiFixture()
afterAll(() => at.openai.stop())

test.each([
  [{ defaultModel: 'ours-1' }, undefined, 'ours-1'],
  [{ model: 'ours-2' }, undefined, 'ours-2'],
  [{ model: 'ours-2', defaultModel: 'ours-1' }, undefined, 'ours-2'],
  [{ defaultModel: 'ours-1' }, 'named', 'named'],
] as const)(
  'a chat with source metadata %j and agent model %p uses the model %s',
  async (metadata, model, expected) => {
    const connection = { name: 'S', kind: 'openai', metadata: { apiUrl: at.openai.url, ...metadata } }
    const { _id: sourceId } = await at.made('/integration-sources', { ...connection, authentication: { token: 'x' } })
    const agent = await at.agent({ sourceId, model })
    expect((await at.chat(at.user, agent)).status).toBe(200)
    expect((await at.usage())[0]?.model).toBe(expected)
  },
)
