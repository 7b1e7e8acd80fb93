import type { Ctx } from '../../accounts/context'
import { Problem } from '../../core/problem'
import { assertSameSite, isLoopbackHost } from '../../http/allowed-origins'
import { disableIdleTimeout } from '../../tenancy/client-connection'

/**
 * Answers a message of the protocol. Pages of other hosts are refused whatever their credential is, because a name that is
 * bound to another address could let them in (DNS rebinding).
 * @throws 400 for an invalid message, 403 CROSS_SITE, 406 when `Accept` takes no JSON
 */
export async function handleMessage(ctx: Ctx, request: Request, message: unknown): Promise<Response> {
  await assertGoodOrigin(ctx, request)
  if (!acceptsJson(request))
    throw new Problem(406, 'NOT_ACCEPTABLE', 'Send the header Accept: application/json, text/event-stream.')
  if (Array.isArray(message))
    throw invalidMessageProblem('Send one message at a time: the protocol no longer supports batches.')
  disableIdleTimeout(request)
  // The package is slow to load, so it is loaded with the first message.
  const { answerMessage } = await import('./server')
  const response = await answerMessage(ctx, request, message)
  if (response.status < 400) return response
  const { error } = (await response.json()) as { error?: { message?: string } }
  const reason = error?.message
  if (!reason || reason.startsWith('Parse error'))
    throw invalidMessageProblem('This is not a message of the Model Context Protocol.')
  throw invalidMessageProblem(reason.replace(/\.?$/, '.'))
}

/** A page of the local machine is a program in development, such as an inspector. */
async function assertGoodOrigin(ctx: Ctx, request: Request) {
  const origin = URL.parse(request.headers.get('origin') ?? '')
  if (ctx.actor.via === 'cookie' || !(origin && isLoopbackHost(origin.hostname))) await assertSameSite(request, ctx)
}

/** Every answer is JSON, so whoever takes anything gets it. */
const acceptsJson = ({ headers }: Request) => /(?:application|\*)\/(?:json|\*)/i.test(headers.get('accept') ?? '')

const invalidMessageProblem = (message: string) =>
  new Problem(400, 'INVALID_INPUT', message, { details: [{ path: '', message }] })
