import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { scoreRankings } from '../../../src/ai/knowledge/rank-fusion'
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

/** Returns the share of questions that have the answering text among the first five results. */
async function measureRecall(embeddingModel?: string) {
  const own = await createKnowledgeFixture()
  const source = embeddingModel ? await own.source(models.url, embeddingModel) : 'echo'
  const agent = await own.agent(['tenant'])
  const store = await own.store('admin', agent._id, 'tenant', undefined, source)
  for (const { name, text } of corpus) await own.upload('admin', store, text, name, source)
  const missed: string[] = []
  const questions = corpus.flatMap(({ name, questions }) => questions.map((question) => ({ name, question })))
  for (const { name, question } of questions) {
    const { citations } = await own.retrieve('user', agent, question)
    if (!citations.slice(0, 5).some(({ fileName }) => fileName === name)) missed.push(question)
  }
  return { recall: 1 - missed.length / questions.length, missed, questions: questions.length }
}

describe('recall in a small corpus', () => {
  test('full-text search finds the answering text among the first five for at least 90% of the questions', async () => {
    const { recall, missed, questions } = await measureRecall()
    expect(questions).toBeGreaterThan(60)
    expect(recall, missed.join('\n')).toBeGreaterThanOrEqual(0.9)
  })

  test('full-text and vector search together find the answering text among the first five for at least 90% of the questions', async () => {
    const { recall, missed } = await measureRecall('words-512')
    expect(recall, missed.join('\n')).toBeGreaterThanOrEqual(0.9)
  })
})

test('rank fusion puts results that rank high in several lists before results of one list', () => {
  const rank = (...lists: number[][]) => scoreRankings(lists).map(([item]) => item)
  expect(rank([1, 2, 3], [3, 4, 1])).toEqual([1, 3, 2, 4])
  expect(rank([7, 8], [])).toEqual([7, 8])
  expect(rank()).toEqual([])
})
