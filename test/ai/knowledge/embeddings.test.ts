import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { handleRequest } from '../../../src/gateway'
import { type OpenaiServer, startOpenai } from '../../fakes/openai-server'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { errorOf } from '../../rejections'
import { statusAndCode } from '../../test-tenant'
import { createKnowledgeFixture, type KnowledgeFixture } from './knowledge-fixtures'

setDefaultTimeout(30_000)

let fixture: KnowledgeFixture
let models: OpenaiServer
beforeAll(async () => {
  allowPrivateNetwork()
  ;[fixture, models] = [await createKnowledgeFixture(), await startOpenai()]
})
beforeEach(() => models.clear())
afterAll(async () => {
  await models.stop()
  denyPrivateNetwork()
})

const listEmbeddingCalls = () => models.requests.filter(({ path }) => path.endsWith('/embeddings'))
const makeParts = (n: number) => Array.from({ length: n }, (_, i) => `Part ${i}.\n\n${'z '.repeat(500)}`).join('\n\n')

/** Creates a user's store whose vectors come from the fake OpenAI server. */
async function createEmbeddingFixture(model = 'words-64') {
  const source = await fixture.source(models.url, model)
  const agent = await fixture.agent(['user'], { sourceId: source })
  const store = await fixture.store('user', agent._id, 'user', fixture.users.user, source)
  const upload = (content: unknown, name?: string) => fixture.upload('user', store, content, name, source)
  const send = (content: unknown) =>
    fixture.as('user').post(`${fixture.path(source)}/upload`, { vectorStoreId: store, content })
  const use = (metadata: object) => fixture.admin.put(`/integration-sources/${source}`, { metadata })
  return {
    source,
    agent,
    store,
    upload,
    send,
    use,
    retrieve: (question: string) => fixture.retrieve('user', agent, question),
  }
}
const readVectorBytes = async (file: string) =>
  (await fixture.tenant.db.query('select vector from knowledge_chunks where file = ? order by position', [file])) as [
    Uint8Array | null,
  ][]

describe('vectors', () => {
  test('uploads are embedded in batches by the model of the source, and vectors are stored as little-endian float32', async () => {
    const { upload } = await createEmbeddingFixture()
    const file = await upload(makeParts(200))
    const calls = listEmbeddingCalls()
    expect(calls.length).toBeLessThan(5)
    expect(calls[0]!.headers.authorization).toBe('Bearer sk-1')
    expect(calls[0]!.body).toMatchObject({ model: 'words-64', encoding_format: 'float' })
    expect(calls.flatMap(({ body }) => body.input)).toHaveLength(200)
    const vectors = await readVectorBytes(file)
    expect(vectors).toHaveLength(200)
    for (const [vector] of vectors) {
      const view = new DataView(vector!.buffer, vector!.byteOffset, vector!.byteLength)
      const numbers = Array.from({ length: 64 }, (_, n) => view.getFloat32(n * 4, true))
      expect(vector!.byteLength).toBe(64 * 4)
      expect(Math.hypot(...numbers)).toBeCloseTo(1, 5)
    }
  })

  test('vector search finds a text that shares no word with the question', async () => {
    const { upload, retrieve } = await createEmbeddingFixture()
    models.own.always = ({ body }) => ({
      body: JSON.stringify({
        data: [body.input]
          .flat()
          .map((text: string, index: number) => ({ index, embedding: /feline|cat/.test(text) ? [3, 4] : [4, -3] })),
      }),
    })
    for (const [name, text] of [
      ['cats', 'The cat sleeps.'],
      ['dogs', 'The dog barks.'],
      ['fish', 'The fish swims.'],
    ])
      await upload(text, name)
    const { citations } = await retrieve('feline')
    models.own.always = {}
    expect(citations[0]).toMatchObject({ fileName: 'cats', chunk: 0 })
  })

  test('vector search includes an added file and excludes a removed one at once', async () => {
    const { upload, retrieve, store, source } = await createEmbeddingFixture()
    const names = async () => (await retrieve('word')).citations.map(({ fileName }) => fileName).sort()
    const first = await upload('one', 'one')
    expect(await names()).toEqual(['one'])
    await upload('two', 'two')
    expect(await names()).toEqual(['one', 'two'])
    await fixture.as('user').post(`${fixture.path(source)}/clear`, { vectorStoreId: store, fileIds: [first] })
    expect(await names()).toEqual(['two'])
  })

  test('vector search compares the vectors of many files and of a large one', async () => {
    const { upload, retrieve } = await createEmbeddingFixture('words-256')
    await upload(makeParts(1_300), 'large')
    for (let n = 0; n < 5; n++) await upload(`Needle${n} in the hay.`, `needle${n}`)
    for (let n = 0; n < 5; n++) expect((await retrieve(`needle${n} hay`)).citations[0]!.fileName).toBe(`needle${n}`)
  })
})

describe('a changed embedding model', () => {
  test('uploads and questions with another model or dimension get 409 EMBEDDING_MISMATCH until the store is cleared or the model restored', async () => {
    const { source, store, send, use, upload, retrieve } = await createEmbeddingFixture()
    await upload('before')
    await use({ embeddingModel: 'words-32' })
    const refused = await send('after')
    expect(statusAndCode(refused)).toEqual([409, 'EMBEDDING_MISMATCH'])
    expect(refused.body.details).toEqual({ model: 'words-64', dimension: 64 })
    expect(await errorOf(retrieve('before'))).toMatchObject({ code: 'EMBEDDING_MISMATCH' })
    await use({ embeddingModel: 'words-64' })
    expect((await send('after')).status).toBe(201)
    // A provider may change the dimension of a model under the same name.
    models.reply({ body: JSON.stringify({ data: [{ index: 0, embedding: [1, 2, 3] }] }) })
    expect(statusAndCode(await send('other'))).toEqual([409, 'EMBEDDING_MISMATCH'])
    await use({ embeddingModel: 'words-32' })
    await fixture.as('user').post(`${fixture.path(source)}/clear`, { vectorStoreId: store })
    expect((await send('anew')).status).toBe(201)
    expect((await retrieve('anew')).citations).toHaveLength(1)
    const left = 'select 1 from knowledge_files f join vector_stores s on s._id = f.store where s._id = ?'
    expect(await fixture.tenant.db.query(left, [store])).toHaveLength(1)
  })

  test('a store whose source has lost its embedding model falls back to full-text search', async () => {
    const { send, use, upload, retrieve } = await createEmbeddingFixture()
    await upload('before', 'before')
    await use({ embeddingModel: null })
    expect((await send('and before that')).status).toBe(201)
    models.clear()
    expect((await retrieve('before')).citations).toHaveLength(2)
    expect(listEmbeddingCalls()).toEqual([])
  })
})

describe('a failing embedding provider', () => {
  test('an upload answers 502 or 503 and keeps nothing when the provider fails, and succeeds when a retry does', async () => {
    const { send, store } = await createEmbeddingFixture()
    for (const [plan, expected] of [
      [{ status: 401 }, [502, 'AI_UPSTREAM_ERROR']],
      [{ status: 429, headers: { 'retry-after': '7' } }, [503, 'AI_UPSTREAM_BUSY']],
      [{ body: '{' }, [502, 'AI_UPSTREAM_ERROR']],
      ...[
        '[]',
        '{}',
        '5',
        '[null]',
        '[{"index":0}]',
        '[{"index":0,"embedding":[]}]',
        '[{"index":-1,"embedding":[1]}]',
      ].map((data) => [{ body: `{"data":${data}}` }, [502, 'AI_UPSTREAM_ERROR']] as const),
      [{ body: '{"data":[{"index":0,"embedding":"AAAA"}]}' }, [502, 'AI_UPSTREAM_ERROR']],
      [{ body: '{"data":[{"index":0,"embedding":[1,"x"]}]}' }, [502, 'AI_UPSTREAM_ERROR']],
      [{ body: '{"data":[{"index":5,"embedding":[1,2]}]}' }, [502, 'AI_UPSTREAM_ERROR']],
    ] as const) {
      models.clear()
      models.reply(plan)
      expect([plan, statusAndCode(await send('text'))] as unknown).toEqual([plan, [...expected]])
    }
    models.clear()
    models.reply({ status: 500 })
    expect((await send('tried again')).status).toBe(201)
    const rows = await fixture.tenant.db.query('select ready from knowledge_files where store = ?', [store])
    expect(rows).toEqual([[1]])
  })

  test('an upload that fails in the middle of a large file leaves no rows, and its store accepts another model', async () => {
    const { send, store, use } = await createEmbeddingFixture()
    models.reply({
      body: JSON.stringify({ data: Array.from({ length: 96 }, (_, index) => ({ index, embedding: [1, 2] })) }),
    })
    models.reply({ status: 400 })
    expect(statusAndCode(await send(makeParts(200)))).toEqual([502, 'AI_UPSTREAM_ERROR'])
    expect(await fixture.tenant.db.query('select 1 from knowledge_files where store = ?', [store])).toEqual([])
    expect(await fixture.tenant.db.query('select chunks from vector_stores where _id = ?', [store])).toEqual([[0]])
    // An empty store is bound to no model.
    await use({ embeddingModel: 'words-32' })
    expect((await send('text')).status).toBe(201)
  })
})

test('an upload whose client disconnects leaves no file', async () => {
  const { source, store } = await createEmbeddingFixture()
  const leaving = new AbortController()
  models.own.always = () => {
    leaving.abort()
    return { body: JSON.stringify({ data: Array.from({ length: 96 }, (_, index) => ({ index, embedding: [1, 2] })) }) }
  }
  const body = JSON.stringify({ vectorStoreId: store, content: makeParts(500) })
  const headers = { host: `${fixture.id}.test`, 'x-api-key': fixture.tokens.user, 'content-type': 'application/json' }
  const url = `${fixture.origin}/api${fixture.path(source)}/upload`
  await handleRequest(new Request(url, { method: 'POST', headers, body, signal: leaving.signal })).catch(() => {})
  models.own.always = {}
  const left = () => fixture.tenant.db.query('select 1 from knowledge_files where store = ?', [store])
  while ((await left()).length) await Bun.sleep(5)
  expect(listEmbeddingCalls().length).toBeLessThan(3)
})

test('a chat puts the retrieved text into the prompt and cites its file, and other users do not get it', async () => {
  const { agent, upload } = await createEmbeddingFixture()
  const fileId = await upload('The gate opens at 04:45.', 'gate.txt')
  models.clear()
  const ask = { messages: [{ role: 'user', content: 'When does the gate open?' }] }
  const { status, body } = await fixture.as('user').post(`/ai/${agent._id}/chat-completion`, ask)
  expect(status).toBe(200)
  expect(body.citations).toEqual([{ fileId, fileName: 'gate.txt', chunk: 0 }])
  const { messages } = models.last().body as { messages: { role: string; content: string }[] }
  expect(
    messages.some(({ role, content }) => role === 'system' && content.includes('The gate opens at 04:45.')),
  ).toBeTrue()
  const otherUserReply = await fixture.as('other').post(`/ai/${agent._id}/chat-completion`, ask)
  expect([otherUserReply.status, otherUserReply.body.citations ?? []]).toEqual([200, []])
  expect(JSON.stringify(models.last().body)).not.toContain('04:45')
})

test('a stream carries the citations in its final chunk, and a changed embedding model is answered with 409 EMBEDDING_MISMATCH', async () => {
  const { agent, upload, use } = await createEmbeddingFixture()
  const fileId = await upload('The gate opens at 04:45.', 'gate.txt')
  const ask = { messages: [{ role: 'user', content: 'When does the gate open?' }], stream: true }
  const { body } = await fixture.as('user').post(`/ai/${agent._id}/chat-completion`, ask)
  const chunks = (body as string).split('\n\n').filter((one) => one.startsWith('data: {'))
  const cited = chunks.map((one) => JSON.parse(one.slice(6))).filter(({ citations }) => citations)
  expect(cited).toHaveLength(1)
  expect(cited[0]).toMatchObject({ citations: [{ fileId, fileName: 'gate.txt', chunk: 0 }], choices: [{ delta: {} }] })
  expect(chunks.at(-1)).toContain('citations')
  await use({ embeddingModel: 'words-32' })
  expect(statusAndCode(await fixture.as('user').post(`/ai/${agent._id}/chat-completion`, ask))).toEqual([
    409,
    'EMBEDDING_MISMATCH',
  ])
})
