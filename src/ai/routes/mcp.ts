import { Elysia, t } from 'elysia'
import { aiGuard } from '../../accounts/guard'
import { ProblemShape } from '../../core/problem'

/** Streamable HTTP without sessions: every message is answered at once, so there are no routes for GET and DELETE. */
export const mcpRoutes = new Elysia({ prefix: '/mcp', tags: ['ai'] })
  .use(aiGuard('mcp'))
  // The package takes a tenth of a second to load, so it is loaded with the first message.
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
