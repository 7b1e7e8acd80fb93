import type { TSchema } from '@sinclair/typebox'
import { Elysia, t } from 'elysia'
import { aiGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { createChatCompletion } from '../openai/chat-completions'
import { createEmbeddings } from '../openai/embedding-requests'
import * as models from '../openai/models'
import {
  ChatCompletion,
  ChatCompletionRequest,
  EmbeddingList,
  EmbeddingRequest,
  Model,
  ModelList,
} from '../openai/shapes'

const OpenAiError = t.Object(
  {
    error: t.Object({
      message: t.String(),
      type: t.String(),
      code: t.String(),
      param: t.Nullable(t.String({ description: 'the part of the request that is wrong' })),
    }),
    ...ProblemShape.properties,
  },
  { description: 'The error as OpenAI’s clients read it, and as all other routes have it.' },
)

const errorResponses = {
  400: OpenAiError,
  402: OpenAiError,
  404: OpenAiError,
  429: OpenAiError,
  502: OpenAiError,
  503: OpenAiError,
  504: OpenAiError,
}

/** The types of descriptions are narrower than those of shapes. */
const toSchema = (shape: TSchema) => shape as unknown as { type: 'object' }

const errorContent = (description: string) => ({
  description,
  content: { 'application/json': { schema: toSchema(OpenAiError) } },
})

/** The interface of OpenAI, for its clients: agents are models, and API tokens are keys. */
export const openAiRoutes = new Elysia({ prefix: '/ai/v1', tags: ['ai'] })
  .use(aiGuard('ai'))
  .get('/models', ({ ctx }) => models.list(ctx), {
    can: 'user',
    response: ModelList,
    detail: {
      operationId: 'listModels',
      summary: 'List agents as models',
      description: 'For clients of OpenAI’s API: the agents that the caller may use, newest first.',
    },
  })
  .get('/models/:model', ({ ctx, params }) => models.get(ctx, params.model), {
    can: 'user',
    params: t.Object({ model: t.String({ description: 'the name or the id of an agent' }) }),
    response: { 200: Model, 404: OpenAiError },
    detail: { operationId: 'getModel', summary: 'Get an agent as a model' },
  })
  .post('/chat/completions', ({ ctx, body, request }) => createChatCompletion(ctx, body, request), {
    can: 'user',
    costly: true,
    body: ChatCompletionRequest,
    detail: {
      operationId: 'createChatCompletion',
      summary: 'Create a chat completion as OpenAI’s API does',
      description:
        'The agent that `model` names answers, with its tools. System messages become rules below its prompt, and `tools` ' +
        'are tools that the client runs.',
      responses: {
        200: {
          description: 'A completion, or its chunks as server-sent events if `stream` is true.',
          content: {
            'application/json': { schema: toSchema(ChatCompletion) },
            'text/event-stream': { schema: { type: 'string' } },
          },
        },
        402: errorContent('a budget is used up'),
        404: errorContent('no such model'),
        429: errorContent('too many requests'),
        502: errorContent('the AI source failed'),
        503: errorContent('the AI source is overloaded; see `Retry-After`'),
        504: errorContent('the AI source did not answer in time'),
      },
    },
  })
  .post('/embeddings', ({ ctx, body, request }) => createEmbeddings(ctx, body, request), {
    can: 'user',
    costly: true,
    body: EmbeddingRequest,
    response: { 200: EmbeddingList, ...errorResponses },
    detail: {
      operationId: 'createEmbeddings',
      summary: 'Create embeddings as OpenAI’s API does',
      description: 'By the model for embeddings of the agent’s source (`metadata.embeddingModel`).',
    },
  })
