import type { APIError } from 'openai'
import { causes } from '../../core/log'
import { Problem } from '../../core/problem'
import { Silent } from '../../core/streaming'

/** Whoever asked has gone, so nobody is answered. */
export const gone = () => new Problem(400, 'CALLER_GONE', 'You did not wait for the answer.')

/** The server is told to stop, and waits no longer. */
export const stopped = () =>
  new Problem(503, 'BUSY', 'The server is being stopped, before this came to its end. Ask again.', {
    headers: { 'retry-after': '5' },
  })

/** A model could not be asked, or did not answer as OpenAI's API has it. */
export class Failed extends Error {
  constructor(cause: unknown) {
    super('The AI source failed.', { cause })
  }
}

/** An answer that makes no sense, or breaks off. */
export class Senseless extends Error {}

/**
 * What callers are told when a source's server fails: 502 AI_UPSTREAM_ERROR, 503 AI_UPSTREAM_BUSY with the time to wait, 504
 * AI_UPSTREAM_TIMEOUT. Of what that server said only the status is told, for its words may repeat ours, and ours secrets.
 */
export function problemOf(error: unknown): unknown {
  if (error instanceof Senseless) return failed(error.message)
  if (!(error instanceof Failed)) return error
  if (causes(error).some((cause) => cause instanceof Silent)) return late()
  const { status, headers } = isOfClient(error.cause) ? error.cause : {}
  if (status === 504 || status === 408) return late()
  if (status === 429) return busy(headers?.get('retry-after') ?? '')
  if (status) return failed(`The AI source answered ${status}.`, { status })
  return failed('The AI source could not be reached, or its answer broke off.')
}

/** The client's own error, told by its shape: its package is loaded by whoever asks first. */
const isOfClient = (cause: unknown): cause is APIError => cause instanceof Error && 'requestID' in cause

const late = () =>
  new Problem(
    504,
    'AI_UPSTREAM_TIMEOUT',
    'The AI source did not answer in time. Try again later, or with another model.',
  )

function busy(after: string) {
  const wait = /^\d{1,6}$/.test(after) || !Number.isNaN(Date.parse(after)) ? { 'retry-after': after } : undefined
  const message = 'The AI source has too much to do, or we have asked too much of it. Try again later.'
  return new Problem(503, 'AI_UPSTREAM_BUSY', message, { headers: wait ?? { 'retry-after': '5' } })
}

const failed = (said: string, details?: object) =>
  new Problem(502, 'AI_UPSTREAM_ERROR', `${said} Whoever administers it can try it by its status.`, { details })
