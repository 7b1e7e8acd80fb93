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

/** An integration's answer, in a thread where one is named. @throws as `complete` does, and 403, 404 */
export const chatWithIntegration = async (
  ctx: Ctx,
  id: string,
  completionRequest: CompletionRequest,
  request: Request,
  thread?: string,
) => complete(ctx, await getUsableAgent(ctx, id), completionRequest, request, { thread })

/** The same for an agent, whose thread the body names. */
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
 * The same as a stream, for clients that can only name an address. It does what a write does, so it asks for the same: no page
 * of another site may have it done by a link.
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
