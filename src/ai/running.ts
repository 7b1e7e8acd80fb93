import type { OpenCtx } from '../accounts/guard'
import { fitting } from '../core/shapes'
import { type Performed, told } from '../plugins/integrations/occasion'
import type { AiTarget } from '../plugins/integrations/targets/ai'
import { Asked } from './shapes'
import { answered } from './turn/completion'

/**
 * Runs an integration whose target is a model, whatever its trigger is: what has happened, or what was sent, is what the
 * model is asked. Answers a completion; to another agent, for which it is a tool, only what the model said.
 */
export async function run(ctx: OpenCtx, target: AiTarget, occasion: Performed): Promise<Response> {
  const { integration: _id, depth, request, signal, trigger, agents } = occasion
  const ending = new AbortController()
  const abort = () => ending.abort(new Error('Nobody waits for it any more.'))
  const signals = [signal, request?.signal].filter((one) => one !== undefined)
  for (const one of signals) one.addEventListener('abort', abort, { once: true })
  if (signals.some(({ aborted }) => aborted)) abort()
  try {
    const asked = fitting(Asked, { messages: [{ role: 'user', content: questionOf(occasion) }] })
    const answer = await answered(ctx, { _id, target }, asked, { request, depth, ending, agents })
    return trigger === 'tool' ? Response.json(contentOf(answer)) : Response.json(answer)
  } finally {
    for (const one of signals) one.removeEventListener('abort', abort)
  }
}

/** The text that was sent, by itself or as a `message`; else all of what came, as JSON. */
function questionOf(occasion: Performed): string {
  const { event, asked } = occasion
  const body = event ? undefined : asked.body
  if (typeof body === 'string' && body) return body
  const { message } = (body ?? {}) as { message?: unknown }
  return typeof message === 'string' && message ? message : JSON.stringify(told(occasion))
}

const contentOf = (answer: object) =>
  (answer as { choices?: { message: { content: string } }[] }).choices?.[0]?.message.content ?? ''
