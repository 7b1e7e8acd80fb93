import type { Ctx } from '../../accounts/context'
import { badRequest } from '../../core/problem'
import { estimateEmbeddingUsage, isEmbeddingSource, requestEmbeddings, toVectorBytes } from '../knowledge/embeddings'
import { openSource } from '../sources/sources'
import { reserveBudget } from '../usage/budgets'
import { calculateCost } from '../usage/prices'
import { rethrowSpentBudget } from './chat-completions'
import { getAgentByModel } from './models'
import type { EmbeddingList, EmbeddingRequest } from './shapes'

/**
 * Returns embeddings by the embedding model of the agent's source, as OpenAI's API does.
 * @throws 400 when the source has none, 402 BUDGET_EXCEEDED, and what `getAgentByModel` and `requestEmbeddings` throw
 */
export async function createEmbeddings(ctx: Ctx, body: EmbeddingRequest, { signal }: Request): Promise<EmbeddingList> {
  const { model, input, encoding_format: format, dimensions } = body
  const agent = await getAgentByModel(ctx, model)
  const source = await openSource(ctx, agent.target.sourceId)
  if (!isEmbeddingSource(source))
    return badRequest({
      path: '/model',
      message: 'The source of this agent has no model for embeddings. An admin can set its metadata.embeddingModel.',
    })
  const texts = [input].flat()
  const usage = estimateEmbeddingUsage(texts)
  const expected = { tokens: usage.prompt, cost: await calculateCost(ctx, source.embeddingModel, usage) }
  const release = await reserveBudget(ctx, expected).catch(rethrowSpentBudget)
  try {
    const { vectors, tokens } = await requestEmbeddings(source, texts, {
      ...{ ctx, integration: agent._id, signal },
      dimensions: dimensions ?? undefined,
    })
    const toEmbedding = (vector: Float32Array) =>
      format === 'base64' ? toVectorBytes(vector).toString('base64') : [...vector]
    return {
      object: 'list',
      data: vectors.map((vector, index) => ({ object: 'embedding', index, embedding: toEmbedding(vector) })),
      model,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    }
  } finally {
    release()
  }
}
