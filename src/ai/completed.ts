import type { Static } from '@sinclair/typebox'
import type { Ctx } from '../accounts/guard'
import { refuseForeign } from '../accounts/origins'
import { refuseBeyond } from '../accounts/permissions'
import { parseJson } from '../core/body'
import { invalid } from '../core/problem'
import { fitting, given } from '../core/shapes'
import { agentFor } from './agents'
import { type AgentAsked, type AgentAskedByAddress, Asked } from './shapes'
import { complete } from './turn/completion'

/** An integration's answer, in a thread where one is named. @throws as `complete` does, and 403, 404 */
export const completed = async (ctx: Ctx, id: string, asked: Asked, request: Request, thread?: string) =>
  complete(ctx, await agentFor(ctx, id), asked, request, { thread })

/** The same for an agent, whose thread the body names. */
export const chatted = async (
  ctx: Ctx,
  id: string,
  { threadId, ...asked }: Static<typeof AgentAsked>,
  request: Request,
) => complete(ctx, await agentFor(ctx, id, 'agent'), asked, request, { thread: given(threadId ?? undefined) })

/**
 * The same as a stream, for clients that can only name an address. It does what a write does, so it asks for the same: no page
 * of another site may have it done by a link.
 */
export async function chattedByAddress(
  ctx: Ctx,
  id: string,
  { messages, threadId }: Static<typeof AgentAskedByAddress>,
  request: Request,
) {
  if (ctx.actor.via === 'cookie') await refuseForeign(request, ctx)
  refuseBeyond(ctx.actor, 'ai', 'write')
  const asked = fitting(Asked, { messages: read(messages), stream: true })
  return complete(ctx, await agentFor(ctx, id, 'agent'), asked, request, { thread: given(threadId) })
}

function read(text: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return invalid({ path: 'messages', message: 'messages must be a list of messages, as JSON.' })
  }
}
