import type { APIError } from 'openai'
import { IdleTimeout } from '../../core/http-stream'
import { getErrorChain } from '../../core/log'
import { Problem } from '../../core/problem'

/** Whoever asked has gone, so nobody is answered. */
export const callerGoneProblem = () =>
  new Problem(400, 'CALLER_GONE', 'The client closed the request before it was answered.')

/** The server is told to stop, and waits no longer. */
export const shutdownProblem = () =>
  new Problem(503, 'BUSY', 'The server is shutting down. Retry the request.', { headers: { 'retry-after': '5' } })

/** A model could not be asked, or did not answer as OpenAI's API has it. */
export class SourceCallError extends Error {
  constructor(cause: unknown) {
    super('The AI source failed.', { cause })
  }
}

/** An answer that makes no sense, or breaks off. */
export class MalformedReply extends Error {}

/**
 * What callers are told when a source's server fails: 502 AI_UPSTREAM_ERROR, 503 AI_UPSTREAM_BUSY with the time to wait, 504
 * AI_UPSTREAM_TIMEOUT. Of what that server said only the status is told, for its words may repeat ours, and ours secrets.
 */
export function toProblem(error: unknown): unknown {
  if (error instanceof MalformedReply) return upstreamProblem(error.message)
  if (!(error instanceof SourceCallError)) return error
  if (getErrorChain(error).some((cause) => cause instanceof IdleTimeout)) return timeoutProblem()
  const { status, headers } = isApiError(error.cause) ? error.cause : {}
  if (status === 504 || status === 408) return timeoutProblem()
  if (status === 429) return busyProblem(headers?.get('retry-after') ?? '')
  if (status) return upstreamProblem(`The AI source answered ${status}.`, { status })
  return upstreamProblem('The AI source could not be reached, or its answer broke off.')
}

/** The client's own error, told by its shape: its package is loaded by whoever asks first. */
const isApiError = (cause: unknown): cause is APIError => cause instanceof Error && 'requestID' in cause

const timeoutProblem = () =>
  new Problem(
    504,
    'AI_UPSTREAM_TIMEOUT',
    'The AI source did not answer in time. Try again later, or with another model.',
  )

function busyProblem(retryAfter: string) {
  const waitHeaders =
    /^\d{1,6}$/.test(retryAfter) || !Number.isNaN(Date.parse(retryAfter)) ? { 'retry-after': retryAfter } : undefined
  const message = 'The AI source is overloaded, or is rate limiting. Try again later.'
  return new Problem(503, 'AI_UPSTREAM_BUSY', message, { headers: waitHeaders ?? { 'retry-after': '5' } })
}

const upstreamProblem = (reason: string, details?: object) =>
  new Problem(502, 'AI_UPSTREAM_ERROR', `${reason} Admins can check the status of the integration source.`, { details })
