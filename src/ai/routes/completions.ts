import { Elysia, t } from 'elysia'
import { aiGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { chatWithIntegration } from '../chat'
import { CompletionRequest } from '../shapes'

const problemContent = (description: string) => ({
  description,
  content: { 'application/json': { schema: ProblemShape } },
})

/** The responses of completions, for the OpenAPI document. */
export const completionResponses = {
  200: {
    description:
      'A completion in the format of OpenAI’s API, or calls of client tools (`type: client_tool_calls`); either of them as ' +
      'server-sent events if `stream` or the header `Accept` asks for it: chunks, then `[DONE]`.',
    content: {
      'application/json': { schema: { type: 'object' } },
      'text/event-stream': { schema: { type: 'string' } },
    },
  },
  404: problemContent('no such integration or thread'),
  429: problemContent('a budget is used up'),
  502: problemContent('the AI source failed'),
  503: problemContent('the AI source is overloaded; see `Retry-After`'),
  504: problemContent('the AI source did not answer in time'),
} as const

/** Returns new options for each route, because Elysia modifies them. */
const completionRoute = (operationId: string, summary: string) =>
  ({
    can: 'user',
    costly: true,
    body: CompletionRequest,
    detail: { operationId, summary, responses: completionResponses },
  }) as const

export const completionRoutes = new Elysia({ prefix: '/ai/:integrationId/chat-completion', tags: ['ai'] })
  .use(aiGuard('ai'))
  .post('/', ({ ctx, params, body, request }) => chatWithIntegration(ctx, params.integrationId, body, request), {
    ...completionRoute('createCompletion', 'Create a chat completion'),
    params: t.Object({ integrationId: t.String() }),
  })
  .post(
    '/:threadId',
    ({ ctx, params, body, request }) => chatWithIntegration(ctx, params.integrationId, body, request, params.threadId),
    {
      ...completionRoute('createThreadCompletion', 'Create a chat completion in a thread'),
      params: t.Object({ integrationId: t.String(), threadId: t.String() }),
    },
  )
