import { ProblemShape } from '../../core/problem'
import type { Components } from './components'
import type { Schema } from './schema'

type SharedResponse = { name: string; description: string; code: string; message: string; details?: unknown }

const RETRY_AFTER_HEADER = {
  'Retry-After': { description: 'Seconds to wait before retrying', schema: { type: 'string' } },
}

/** The headers by which a caller knows how many requests are left. Every response below `/api` has them. */
const RATE_LIMIT_HEADERS = Object.fromEntries(
  Object.entries({
    'RateLimit-Limit': 'Requests of this kind allowed per minute',
    'RateLimit-Remaining': 'Requests remaining',
    'RateLimit-Reset': 'Seconds until the limit resets in full',
  }).map(([name, description]) => [name, { description, schema: { type: 'integer' } }]),
)
const HEADERS_BY_STATUS: Record<string, object> = {
  429: { ...RETRY_AFTER_HEADER, ...RATE_LIMIT_HEADERS },
  503: RETRY_AFTER_HEADER,
}

/** Error responses that many operations share, by status. */
const SHARED_RESPONSES: Record<string, SharedResponse> = {
  400: {
    name: 'BadRequest',
    description:
      'A parameter, a header or the body is invalid. For INVALID_INPUT, `details` has the path of each error.',
    code: 'INVALID_INPUT',
    message: 'The request does not fit the schema.',
    details: [{ path: '/name', message: 'name is required.' }],
  },
  401: {
    name: 'Unauthenticated',
    description: 'The credentials are missing, invalid or expired.',
    code: 'UNAUTHENTICATED',
    message: 'Sign in first, or send an API token.',
  },
  403: {
    name: 'Forbidden',
    description: 'The caller lacks permission, the tenant has exceeded a quota, or the tenant is suspended.',
    code: 'FORBIDDEN',
    message: 'Your roles do not allow this.',
  },
  404: {
    name: 'NotFound',
    description: 'The tenant or the resource does not exist, or is not visible to the caller.',
    code: 'TENANT_NOT_FOUND',
    message: 'There is no such tenant.',
  },
  409: {
    name: 'Conflict',
    description: 'The request conflicts with existing data, or with another request with the same Idempotency-Key.',
    code: 'BLUEPRINT_EXISTS',
    message: 'There is a blueprint with this key already.',
  },
  412: {
    name: 'VersionMismatch',
    description: 'The ETag in `If-Match` is stale.',
    code: 'VERSION_MISMATCH',
    message: 'The resource has changed since you read it. Read it again, then retry.',
  },
  413: {
    name: 'BodyTooLarge',
    description: 'The body is too large.',
    code: 'BODY_TOO_LARGE',
    message: 'The body is too large. The limit is 1048576 bytes.',
  },
  415: {
    name: 'UnsupportedMediaType',
    description: 'The Content-Type is not supported, the charset is not UTF-8, or the body has a Content-Encoding.',
    code: 'UNSUPPORTED_MEDIA_TYPE',
    message: 'Send JSON, with the header Content-Type: application/json.',
  },
  422: {
    name: 'IdempotencyKeyReused',
    description: 'The Idempotency-Key was used with a different body.',
    code: 'IDEMPOTENCY_KEY_REUSED',
    message: 'This Idempotency-Key was already used for a different request. Use a new key for each request.',
  },
  429: {
    name: 'RateLimited',
    description: 'Too many requests, or a budget is exhausted.',
    code: 'RATE_LIMITED',
    message: 'You have made too many requests: the limit is 600 reads per minute. Try again in 60 s.',
  },
  503: {
    name: 'Busy',
    description: 'The server is busy or shutting down.',
    code: 'BUSY',
    message: 'The server is busy. Try again in a moment.',
  },
  default: {
    name: 'Error',
    description: 'Any other error.',
    code: 'INTERNAL',
    message: 'Something went wrong on our side. Quote the request id when you report it.',
    details: { requestId: '019a7c7e-5d4b-7f3e-9a53-2f6d1c0b8e11' },
  },
}

/**
 * Returns the description of an error response: its own, or a reference to a shared one, which is added to `responses`.
 */
export function errorResponse(components: Components, responses: Schema, status: string, ownDescription?: string) {
  const shared = SHARED_RESPONSES[status]
  const schema = components.schemaFor(ProblemShape, 'Problem')
  if (!shared || ownDescription) {
    const description = ownDescription ?? STATUS_DESCRIPTIONS[status] ?? 'Error'
    return { description, content: { 'application/json': { schema } } }
  }
  const { name, description, ...example } = shared
  const headers = HEADERS_BY_STATUS[status] && { headers: HEADERS_BY_STATUS[status] }
  responses[name] ??= { description, ...headers, content: { 'application/json': { schema, example } } }
  return { $ref: `#/components/responses/${name}` }
}

const STATUS_DESCRIPTIONS: Record<string, string> = {
  406: 'No type in the Accept header is supported',
  500: 'The installation or the tenant is not configured for this operation',
  502: 'An upstream server failed or is unreachable',
  504: 'An upstream server timed out',
  507: 'The storage is full',
}
