import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { fuseRankings } from '../../../src/ai/knowledge/rank-fusion'
import { type OpenaiServer, startOpenai } from '../../fakes/openai-server'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { createKnowledgeFixture } from './knowledge-fixtures'
import { corpus } from './retrieval-corpus'

setDefaultTimeout(30_000)

let models: OpenaiServer
beforeAll(async () => {
  allowPrivateNetwork()
  models = await startOpenai()
})
afterAll(async () => {
  await models.stop()
  denyPrivateNetwork()
})

/** How many of the questions have the text that answers them among the first five that are found. */
async function measureRecall(embeddingModel?: string) {
  const own = await createKnowledgeFixture()
  const source = embeddingModel ? await own.source(models.url, embeddingModel) : 'echo'
  const agent = await own.agent(['tenant'])
  const store = await own.store('admin', agent._id, 'tenant', undefined, source)
  for (const { name, text } of corpus) await own.upload('admin', store, text, name, source)
  const missed: string[] = []
  const questions = corpus.flatMap(({ name, questions }) => questions.map((question) => ({ name, question })))
  for (const { name, question } of questions) {
    const { citations } = await own.asked('user', agent, question)
    if (!citations.slice(0, 5).some(({ fileName }) => fileName === name)) missed.push(question)
  }
  return { recall: 1 - missed.length / questions.length, missed, questions: questions.length }
}

describe('of a small library, at least nine of ten questions find the text that answers them among the first five', () => {
  test('by words alone', async () => {
    const { recall: found, missed, questions } = await measureRecall()
    expect(questions).toBeGreaterThan(60)
    expect(found, missed.join('\n')).toBeGreaterThanOrEqual(0.9)
  })

  test('by words and vectors', async () => {
    const { recall: found, missed } = await measureRecall('words-512')
    expect(found, missed.join('\n')).toBeGreaterThanOrEqual(0.9)
  })
})

test('several orders become one: first what stands high in several, then what stands high in one', () => {
  expect(
    fuseRankings([
      [1, 2, 3],
      [3, 4, 1],
    ]),
  ).toEqual([1, 3, 2, 4])
  expect(fuseRankings([[7, 8], []])).toEqual([7, 8])
  expect(fuseRankings([])).toEqual([])
})
