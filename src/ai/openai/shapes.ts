import { type Static, t } from 'elysia'
import { jsonObject, line } from '../../core/shapes'
import { CompletionRequest } from '../shapes'

const maybe = t.Optional

const {
  messages,
  temperature,
  top_p,
  max_tokens,
  frequency_penalty,
  presence_penalty,
  stop,
  response_format,
  tools,
  stream,
} = CompletionRequest.properties

const model = line(200, 1)

/** OpenAI's clients send more than this; what is not named here is ignored. */
export const ChatCompletionRequest = t.Object({
  model: { ...model, description: 'the name or the id of an agent' },
  ...{
    messages,
    temperature,
    top_p,
    max_tokens,
    frequency_penalty,
    presence_penalty,
    stop,
    response_format,
    tools,
    stream,
  },
  max_completion_tokens: { ...max_tokens, description: 'the same as `max_tokens`' },
  stream_options: maybe(t.Nullable(t.Object({ include_usage: maybe(t.Nullable(t.Boolean())) }))),
  tool_choice: maybe(
    t.Nullable(
      t.Union([
        ...['none', 'auto', 'required'].map((name) => t.Literal(name)),
        t.Object({ type: t.Literal('function'), function: t.Object({ name: t.String({ maxLength: 200 }) }) }),
      ]),
    ),
  ),
  parallel_tool_calls: maybe(t.Nullable(t.Boolean())),
  reasoning_effort: maybe(t.Nullable(line(50))),
  seed: maybe(t.Nullable(t.Number())),
  n: maybe(t.Nullable(t.Literal(1, { description: 'there is one answer' }))),
})
export type ChatCompletionRequest = Static<typeof ChatCompletionRequest>

const usage = t.Object({ prompt_tokens: t.Number(), completion_tokens: t.Number(), total_tokens: t.Number() })

export const ChatCompletion = t.Object(
  {
    id: t.String(),
    object: t.Literal('chat.completion'),
    created: t.Number({ description: 'seconds since 1970' }),
    model: t.String({ description: 'the model as the request named it' }),
    choices: t.Array(
      t.Object({
        index: t.Number(),
        message: t.Object({
          role: t.Literal('assistant'),
          content: t.Nullable(t.String()),
          tool_calls: maybe(t.Array(jsonObject, { description: 'calls of the tools of the request' })),
        }),
        finish_reason: t.String(),
      }),
    ),
    usage,
  },
  { description: 'a completion in the format of OpenAI’s API' },
)

const embeddedText = t.String({ minLength: 1, maxLength: 32_000 })

export const EmbeddingRequest = t.Object({
  model: { ...model, description: 'the name or the id of an agent, whose source has a model for embeddings' },
  input: t.Union([embeddedText, t.Array(embeddedText, { minItems: 1, maxItems: 2_048 })]),
  encoding_format: maybe(t.Nullable(t.Union([t.Literal('float'), t.Literal('base64')]))),
  dimensions: maybe(t.Nullable(t.Number({ multipleOf: 1, minimum: 1, maximum: 16_384 }))),
})
export type EmbeddingRequest = Static<typeof EmbeddingRequest>

export const EmbeddingList = t.Object({
  object: t.Literal('list'),
  data: t.Array(
    t.Object({
      object: t.Literal('embedding'),
      index: t.Number(),
      embedding: t.Union([t.Array(t.Number()), t.String({ description: 'base64 of float32, little-endian' })]),
    }),
  ),
  model: t.String(),
  usage: t.Object({ prompt_tokens: t.Number(), total_tokens: t.Number() }),
})
export type EmbeddingList = Static<typeof EmbeddingList>

export const Model = t.Object({
  id: t.String({ description: 'the name of an agent, or its id where the name is missing or not the only one' }),
  object: t.Literal('model'),
  created: t.Number({ description: 'seconds since 1970' }),
  owned_by: t.String(),
})
export type Model = Static<typeof Model>
export const ModelList = t.Object({ object: t.Literal('list'), data: t.Array(Model) })
