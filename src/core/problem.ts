import type { ValueError } from '@sinclair/typebox/errors'
import { Elysia, NotFoundError, ParseError, t, ValidationError } from 'elysia'
import { getErrorChain, logError } from './log'
import { isOpenAiRequest, toOpenAiError } from './openai-error'
import { pinRequestId } from './request-id'
import { notesOf } from './request-log'
import { type FieldError, MAX_FIELD_ERRORS, toFieldErrors } from './validation'

export type { FieldError }

/** Statuses of failures that are logged where they happen, or need no log line. */
const UNLOGGED_STATUSES = [503, 507]

/**
 * An error that is reported to the caller. Any other error that is thrown is a bug, and the caller gets 500 INTERNAL.
 */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly more: { details?: unknown; cause?: unknown; headers?: Record<string, string> } = {},
  ) {
    super(message, { cause: more.cause })
  }
}

/** Returns whether an error rejects what was asked (a status below 500); other errors are failures that may pass. */
export const isRejection = (error: unknown) => error instanceof Problem && error.status < 500

/** Returns the error that `notFound` throws. */
export const notFoundProblem = (what: string) =>
  new Problem(404, `${what.toUpperCase().replaceAll(' ', '_')}_NOT_FOUND`, `There is no such ${what}.`)

/** Throws, as in `?? notFound('blueprint')`. @throws 404 with a code such as BLUEPRINT_NOT_FOUND */
export const notFound = (what: string): never => {
  throw notFoundProblem(what)
}

/** @throws 400 INVALID_INPUT with the given errors as details */
export const badRequest = (...errors: FieldError[]): never => {
  throw badRequestProblem(errors)
}

function badRequestProblem(errors: FieldError[]): Problem {
  // Input may be long, but the response must not be. A parameter that is sent twice has its flaw once.
  const distinct = new Map(errors.map((error) => [`${error.path} ${error.message}`, error]))
  const details = [...distinct.values()]
    .slice(0, MAX_FIELD_ERRORS)
    .map(({ path, message }) => ({ path: path.slice(0, 300), message: shorten(message, 500) }))
  return new Problem(400, 'INVALID_INPUT', summarizeErrors(details), { details })
}

const shorten = (text: string, length: number) => (text.length > length ? `${text.slice(0, length - 1)}…` : text)

/** Returns one message for several errors: the first one, and how many others there are. */
export function summarizeErrors([first, ...others]: FieldError[]): string {
  if (!first) return 'The request is invalid.'
  if (!others.length) return first.message
  return `${first.message} ${others.length === 1 ? 'Another problem is' : `${others.length} other problems are`} listed in the details.`
}

/** @throws 429 RATE_LIMITED with the seconds to wait in `Retry-After` */
export const tooManyRequests = (seconds: number, message: string): never => {
  const wait = Math.max(1, Math.ceil(seconds))
  throw new Problem(429, 'RATE_LIMITED', `${message} Try again in ${wait} s.`, {
    headers: { 'retry-after': `${wait}` },
  })
}

export const ProblemShape = t.Object(
  { code: t.String(), message: t.String(), details: t.Optional(t.Unknown()) },
  { description: 'An error with a stable code, a human-readable message and optional details.' },
)

/**
 * Turns errors into responses. The app uses it before any route, because a hook applies only to routes that are added
 * after it.
 */
export const errorHandler = new Elysia({ name: 'problems' }).onError({ as: 'global' }, ({ error, request, set }) =>
  toProblemResponse(error, request, set.headers as Record<string, string>),
)

/**
 * Returns the response to a failed request. The cause of an internal error goes to the log only, under the request's
 * id.
 */
export function toProblemResponse(error: unknown, request: Request, headers: Record<string, string> = {}): Response {
  const problem = toProblem(error) ?? internalProblem(pinRequestId(request))
  const { code, message, more } = problem
  const notes = notesOf(request)
  if (notes) notes.code = code
  // An error of a tenant's code is in the log of its lambda, and is no failure of the server.
  if (problem.status >= 500 && !UNLOGGED_STATUSES.includes(problem.status) && code !== 'LAMBDA_FAILED')
    logError(code, { requestId: pinRequestId(request), ...toRequestInfo(request), cause: error })
  const { status } = problem
  const body = { code, message, details: more.details }
  return Response.json(isOpenAiRequest(request) ? { error: toOpenAiError({ status, ...body }), ...body } : body, {
    status,
    headers: { ...headers, ...challengeOf(status, request), ...more.headers },
  })
}

/** Names the way to authenticate, which RFC 9110 requires of every 401. */
function challengeOf(status: number, { headers }: Request): Record<string, string> {
  if (status !== 401) return {}
  const isRefused = /^bearer /i.test(headers.get('authorization') ?? '')
  return { 'www-authenticate': `Bearer realm="atoll"${isRefused ? ', error="invalid_token"' : ''}` }
}

function toProblem(error: unknown): Problem | undefined {
  const thrown = getErrorChain(error).find((cause) => cause instanceof Problem)
  if (thrown) return thrown
  if (error instanceof NotFoundError) return new Problem(404, 'ROUTE_NOT_FOUND', 'There is no such route.')
  // With a cause, the guard failed, which runs before the body is read.
  if (error instanceof ParseError && !error.cause)
    return new Problem(400, 'MALFORMED_BODY', 'The body could not be read.')
  // A response that does not fit its own shape is our bug, not the caller's.
  if (error instanceof ValidationError && error.type !== 'response') {
    const { validator } = error as { validator: { Errors?: (value: unknown) => Iterable<ValueError> } }
    const errors = toFieldErrors(validator.Errors?.(error.value) ?? [])
    const isBody = error.type === 'body'
    return badRequestProblem(isBody ? errors : errors.map(({ path, message }) => ({ path: path.slice(1), message })))
  }
}

const internalProblem = (requestId: string) =>
  new Problem(500, 'INTERNAL', 'Something went wrong on our side. Quote the request id when you report it.', {
    details: { requestId },
  })

const toRequestInfo = ({ method, url }: Request) => ({ method, path: URL.parse(url)?.pathname })
