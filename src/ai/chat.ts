import type { Static } from '@sinclair/typebox'
import type { Ctx } from '../accounts/context'
import { assertScope } from '../accounts/permissions'
import { parseJson } from '../core/body'
import { badRequest } from '../core/problem'
import { parseOptional, parseWithShape } from '../core/shapes'
import { assertSameSite } from '../http/allowed-origins'
import { getUsableAgent } from './agents'
import { type AgentChatQuery, type AgentChatRequest, CompletionRequest } from './shapes'
import { complete } from './turn/completion'

/** Returns the completion of an integration, in `thread` if it is given. @throws what `complete` throws, and 401, 403, 404 */
export const chatWithIntegration = async (
  ctx: Ctx,
  id: string,
  completionRequest: CompletionRequest,
  request: Request,
  thread?: string,
) => complete(ctx, await getUsableAgent(ctx, id), completionRequest, request, { thread })

/** Returns the completion of an agent. The body names the thread. @throws what `complete` throws, and 401, 403, 404 */
export const chatWithAgent = async (
  ctx: Ctx,
  id: string,
  { threadId, ...completionRequest }: Static<typeof AgentChatRequest>,
  request: Request,
) =>
  complete(ctx, await getUsableAgent(ctx, id, 'agent'), completionRequest, request, {
    thread: parseOptional(threadId ?? undefined),
  })

/**
 * Streams the completion of an agent to a client that can only send a GET request, such as an EventSource.
 * A completion writes, so the request needs the scope of a write and, with a cookie, has to come from the same site.
 * @throws what `complete` throws, and 400, 401, 403, 404
 */
export async function chatByQuery(
  ctx: Ctx,
  id: string,
  { messages, threadId }: Static<typeof AgentChatQuery>,
  request: Request,
) {
  if (ctx.actor.via === 'cookie') await assertSameSite(request, ctx)
  assertScope(ctx.actor, 'ai', 'write')
  const completionRequest = parseWithShape(CompletionRequest, { messages: parseMessages(messages), stream: true })
  return complete(ctx, await getUsableAgent(ctx, id, 'agent'), completionRequest, request, {
    thread: parseOptional(threadId),
  })
}

function parseMessages(text: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return badRequest({ path: 'messages', message: 'messages must be a list of messages, as JSON.' })
  }
}
