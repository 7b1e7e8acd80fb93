const ID_PREFIX = Bun.randomUUIDv7().slice(0, 13)
let requestCount = 0
const idByRequest = new WeakMap<Request, string>()

/**
 * Returns the id of a request for its response and the log: the valid `X-Request-Id` of the caller, or a generated one.
 */
export function getRequestId(request: Request): string {
  const pinned = idByRequest.get(request)
  if (pinned) return pinned
  const received = request.headers.get('x-request-id')
  return received && /^[\w.:-]{1,64}$/.test(received) ? received : `${ID_PREFIX}-${(++requestCount).toString(36)}`
}

/** Gives a request that was derived from another the same id. */
export const inheritRequestId = (request: Request, original: Request) =>
  void idByRequest.set(request, pinRequestId(original))

/** Returns the id of a request and remembers it, for callers that need the id before the response has it. */
export function pinRequestId(request: Request): string {
  const requestId = getRequestId(request)
  idByRequest.set(request, requestId)
  return requestId
}
