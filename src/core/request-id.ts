const ID_PREFIX = Bun.randomUUIDv7().slice(0, 13)
let requestCount = 0
const idByRequest = new WeakMap<Request, string>()

/** By what an answer and the log name a request: what the caller says, or a name of ours. */
export function getRequestId(request: Request): string {
  const pinned = idByRequest.get(request)
  if (pinned) return pinned
  const received = request.headers.get('x-request-id')
  return received && /^[\w.:-]{1,64}$/.test(received) ? received : `${ID_PREFIX}-${(++requestCount).toString(36)}`
}

/** For a request that was made from another: the same name. */
export const inheritRequestId = (request: Request, original: Request) =>
  void idByRequest.set(request, pinRequestId(original))

/** The same, which it will keep: for those who name it before its answer does. */
export function pinRequestId(request: Request): string {
  const requestId = getRequestId(request)
  idByRequest.set(request, requestId)
  return requestId
}
