import type { PublicCtx } from '../accounts/context'
import { toStorableText } from '../core/body'
import { parseWithShape } from '../core/shapes'
import { type TargetInvocation, toPayload } from '../integrations/invocation'
import type { AiTarget } from '../integrations/targets/ai'
import { CompletionRequest } from './shapes'
import { completeWithoutStream } from './turn/completion'

/**
 * Runs an integration with the target `ai`, whatever its trigger is. The event or the request becomes the user message.
 * Returns a completion, or only its text if another agent runs the integration as a tool.
 */
export async function runAiTarget(ctx: PublicCtx, target: AiTarget, invocation: TargetInvocation): Promise<Response> {
  const { integration: _id, depth, request, signal, trigger, agents } = invocation
  const abortController = new AbortController()
  const abort = () => abortController.abort(new Error('The caller is no longer waiting.'))
  const signals = [signal, request?.signal].filter((callerSignal) => callerSignal !== undefined)
  for (const callerSignal of signals) callerSignal.addEventListener('abort', abort, { once: true })
  if (signals.some(({ aborted }) => aborted)) abort()
  try {
    const completionRequest = parseWithShape(CompletionRequest, {
      messages: [{ role: 'user', content: toStorableText(toQuestion(invocation)) }],
    })
    const answer = await completeWithoutStream(ctx, { _id, target }, completionRequest, {
      request,
      depth,
      abortController,
      agents,
    })
    return trigger === 'tool' ? Response.json(toAnswerText(answer)) : Response.json(answer)
  } finally {
    for (const callerSignal of signals) callerSignal.removeEventListener('abort', abort)
  }
}

/** Returns the text of the body, or of its `message`. Otherwise returns the whole payload as JSON. */
function toQuestion(invocation: TargetInvocation): string {
  const { event, input } = invocation
  const body = event ? undefined : input.body
  if (typeof body === 'string' && body) return body
  const { message } = (body ?? {}) as { message?: unknown }
  return typeof message === 'string' && message ? message : JSON.stringify(toPayload(invocation))
}

const toAnswerText = (answer: object) =>
  (answer as { choices?: { message: { content: string } }[] }).choices?.[0]?.message.content ?? ''
