import { UpstreamUnreachable } from '../../core/http-client'
import { IdleTimeout } from '../../core/http-stream'
import { getErrorChain } from '../../core/log'
import { badRequest, Problem } from '../../core/problem'
import { parseRetryAfter } from '../../core/retry-after'
import { SourceStatusError } from '../sources/source-request'

const DEFAULT_WAIT_MS = 5_000

/** Returns the problem of a client that closed its request. Nobody receives it. */
export const callerGoneProblem = () =>
  new Problem(400, 'CALLER_GONE', 'The client closed the request before it was answered.')

/** Returns the problem of a turn that a shutdown aborts. */
export const shutdownProblem = () =>
  new Problem(503, 'BUSY', 'The server is shutting down. Retry the request.', { headers: { 'retry-after': '5' } })

/** A model could not be reached, or its answer is not in the format of OpenAI's API. */
export class SourceCallError extends Error {
  constructor(cause: unknown) {
    super('The AI source failed.', { cause })
  }
}

/** Wraps any error of a request, for all of them are failures of the source. @throws SourceCallError */
export const throwSourceError = (cause: unknown): never => {
  throw new SourceCallError(cause)
}

/** An answer of a model is malformed, or broke off. Its message is safe to show to the caller. */
export class MalformedReply extends Error {}

/**
 * Returns the problem that callers get when a source fails: 502 AI_UPSTREAM_ERROR, 503 AI_UPSTREAM_BUSY with `Retry-After`,
 * 504 AI_UPSTREAM_TIMEOUT. Returns other errors as they are. Only the status of the source's answer is passed on, because
 * its text may repeat the request, with secrets.
 */
export function toProblem(error: unknown): unknown {
  if (error instanceof MalformedReply) return upstreamProblem(error.message)
  if (!(error instanceof SourceCallError)) return error
  if (getErrorChain(error).some(isTimeout)) return timeoutProblem()
  const { status, headers } = error.cause instanceof SourceStatusError ? error.cause : {}
  if (status === 504 || status === 408) return timeoutProblem()
  if (status === 429) return busyProblem(headers?.get('retry-after'))
  if (status) return upstreamProblem(`The AI source answered ${status}.`, { status })
  return upstreamProblem('The AI source could not be reached, or its answer broke off.')
}

const PARTS_REFUSED_STATUSES = [400, 404, 415, 422]

/** @throws 400 when a source refused a request with pictures or other parts that are no text, else the error */
export function rethrowRefusedParts(error: unknown, index: number): never {
  const cause = error instanceof SourceCallError ? error.cause : undefined
  const isRefusal = cause instanceof SourceStatusError && PARTS_REFUSED_STATUSES.includes(cause.status)
  if (index < 0 || !isRefusal) throw error
  return badRequest({
    path: `/messages/${index}/content`,
    message: 'The model of this agent refused a message with other parts than text. Choose one that can read them.',
  })
}

/** Returns the problem for the caller of a turn: why it was aborted, or else what `toProblem` returns. */
export function toTurnProblem(error: unknown, { aborted, reason }: AbortSignal): unknown {
  if (!aborted) return toProblem(error)
  return reason instanceof Problem ? reason : callerGoneProblem()
}

const isTimeout = (cause: unknown) =>
  cause instanceof IdleTimeout || (cause instanceof UpstreamUnreachable && cause.reason === 'timeout')

const timeoutProblem = () =>
  new Problem(
    504,
    'AI_UPSTREAM_TIMEOUT',
    'The AI source did not answer in time. Try again later, or with another model.',
  )

function busyProblem(retryAfter: string | null | undefined) {
  const message = 'The AI source is overloaded, or is rate limiting. Try again later.'
  const wait = parseRetryAfter(retryAfter) ?? DEFAULT_WAIT_MS
  return new Problem(503, 'AI_UPSTREAM_BUSY', message, { headers: { 'retry-after': `${Math.ceil(wait / 1_000)}` } })
}

const upstreamProblem = (reason: string, details?: object) =>
  new Problem(502, 'AI_UPSTREAM_ERROR', `${reason} Admins can check the status of the integration source.`, { details })
