import type { PublicCtx } from '../accounts/context'
import { parseWithShape } from '../core/shapes'
import { type TargetInvocation, toPayload } from '../integrations/invocation'
import type { AiTarget } from '../integrations/targets/ai'
import { CompletionRequest } from './shapes'
import { completeWithoutStream } from './turn/completion'

/**
 * Runs an integration whose target is a model, whatever its trigger is: what has happened, or what was sent, is what the
 * model is asked. Answers a completion; to another agent, for which it is a tool, only what the model said.
 */
export async function runAiTarget(ctx: PublicCtx, target: AiTarget, invocation: TargetInvocation): Promise<Response> {
  const { integration: _id, depth, request, signal, trigger, agents } = invocation
  const abortController = new AbortController()
  const abort = () => abortController.abort(new Error('The caller is no longer waiting.'))
  const signals = [signal, request?.signal].filter((one) => one !== undefined)
  for (const one of signals) one.addEventListener('abort', abort, { once: true })
  if (signals.some(({ aborted }) => aborted)) abort()
  try {
    const completionRequest = parseWithShape(CompletionRequest, {
      messages: [{ role: 'user', content: toQuestion(invocation) }],
    })
    const answer = await completeWithoutStream(ctx, { _id, target }, completionRequest, {
      request,
      depth,
      abortController,
      agents,
    })
    return trigger === 'tool' ? Response.json(toAnswerText(answer)) : Response.json(answer)
  } finally {
    for (const one of signals) one.removeEventListener('abort', abort)
  }
}

/** The text that was sent, by itself or as a `message`; else all of what came, as JSON. */
function toQuestion(invocation: TargetInvocation): string {
  const { event, input } = invocation
  const body = event ? undefined : input.body
  if (typeof body === 'string' && body) return body
  const { message } = (body ?? {}) as { message?: unknown }
  return typeof message === 'string' && message ? message : JSON.stringify(toPayload(invocation))
}

const toAnswerText = (answer: object) =>
  (answer as { choices?: { message: { content: string } }[] }).choices?.[0]?.message.content ?? ''
