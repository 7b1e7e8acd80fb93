import { Elysia, t } from 'elysia'
import { aiGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'

/** Streamable HTTP without sessions: every answer comes at once, so there is nothing to GET, and nothing to DELETE. */
export const mcpRoutes = new Elysia({ prefix: '/mcp', tags: ['ai'] })
  .use(aiGuard('mcp'))
  // Its package takes a tenth of a second to load: who never asks does not wait for it.
  .post(
    '/',
    async ({ ctx, body, request }) => (await import('../mcp/message-handler')).handleMessage(ctx, request, body),
    {
      can: 'user',
      body: t.Unknown(),
      response: { 200: t.Unknown({ description: 'A JSON-RPC response' }), 406: ProblemShape },
      detail: {
        operationId: 'callMcp',
        summary: 'Call the Model Context Protocol server',
        description:
          'JSON-RPC over streamable HTTP, without sessions. Assistants use blueprints and tools with the rights of the caller.',
      },
    },
  )
