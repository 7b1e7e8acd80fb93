import type { Ctx } from '../../accounts/context'
import { Problem } from '../../core/problem'
import { disableIdleTimeout } from '../../tenancy/client-connection'

/** Answers a message of the protocol. @throws 400 for an invalid message, 406 when `Accept` lacks a required type */
export async function handleMessage(ctx: Ctx, request: Request, message: unknown): Promise<Response> {
  if (Array.isArray(message))
    throw invalidMessageProblem('Send one message at a time: the protocol no longer supports batches.')
  disableIdleTimeout(request)
  // The package is slow to load, so it is loaded with the first message.
  const { answerMessage } = await import('./server')
  const response = await answerMessage(ctx, request, message)
  if (response.status < 400) return response
  const { error } = (await response.json()) as { error?: { message?: string } }
  const reason = error?.message
  if (response.status === 406)
    throw new Problem(406, 'NOT_ACCEPTABLE', 'Send the header Accept: application/json, text/event-stream.')
  if (!reason || reason.startsWith('Parse error'))
    throw invalidMessageProblem('This is not a message of the Model Context Protocol.')
  throw invalidMessageProblem(reason.replace(/\.?$/, '.'))
}

const invalidMessageProblem = (message: string) =>
  new Problem(400, 'INVALID_INPUT', message, { details: [{ path: '', message }] })
