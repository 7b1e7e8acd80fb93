import { Elysia, t } from 'elysia'
import { aiGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'
import { completed } from '../completed'
import { Asked } from '../shapes'

const json = (description: string) => ({ description, content: { 'application/json': { schema: ProblemShape } } })

/** What a completion answers, for the documentation. */
export const responses = {
  200: {
    description:
      'A completion as OpenAI’s API has it; what tools of the client’s are to do (`type: client_tool_calls`); or both as ' +
      'server-sent events, where `stream` or the header `Accept` asks for that: chunks, and `[DONE]`.',
    content: {
      'application/json': { schema: { type: 'object' } },
      'text/event-stream': { schema: { type: 'string' } },
    },
  },
  404: json('no such integration or thread'),
  429: json('a budget is used up'),
  502: json('the AI source failed'),
  503: json('the AI source has too much to do; `Retry-After` says how long'),
  504: json('the AI source said nothing for too long'),
} as const

/** One for each route: Elysia changes what it gets. */
const asked = (operationId: string, summary: string) =>
  ({ can: 'user', body: Asked, detail: { operationId, summary, responses } }) as const

export const completionRoutes = new Elysia({ prefix: '/ai/:integrationId/chat-completion', tags: ['ai'] })
  .use(aiGuard('ai'))
  .post('/', ({ ctx, params, body, request }) => completed(ctx, params.integrationId, body, request), {
    ...asked('createCompletion', 'Create a chat completion'),
    params: t.Object({ integrationId: t.String() }),
  })
  .post(
    '/:threadId',
    ({ ctx, params, body, request }) => completed(ctx, params.integrationId, body, request, params.threadId),
    {
      ...asked('createThreadCompletion', 'Create a chat completion in a thread'),
      params: t.Object({ integrationId: t.String(), threadId: t.String() }),
    },
  )
