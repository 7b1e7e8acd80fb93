import { Problem } from '../../core/problem'

/** Requests for which only the guard runs, without any work being done, and whether it admitted them. */
const pendingChecks = new WeakMap<Request, boolean>()

/**
 * Runs only the guard for a request that was answered before. Returns the guard's rejection, or undefined when it
 * admits the caller. `work` must lead through the guard, which stops it before anything is read or done.
 */
export async function checkAuthorization(request: Request, work: (request: Request) => Promise<Response>) {
  pendingChecks.set(request, false)
  const response = await work(request)
  const admitted = pendingChecks.get(request)
  pendingChecks.delete(request)
  return admitted ? undefined : response
}

/**
 * Is called by the guard after it has admitted a request.
 * @throws 409 IDEMPOTENCY_REPLAY when only the guard was to run
 */
export function endAuthorizationCheck(request: Request) {
  if (!pendingChecks.has(request)) return
  pendingChecks.set(request, true)
  throw new Problem(409, 'IDEMPOTENCY_REPLAY', 'This request was already answered.')
}

/** @throws 403 FORBIDDEN for a caller who has lost a right by which the first request may have been allowed */
export function assertRightsStillHeld(held: string[], needed: string[]) {
  if (needed.some((right) => !held.includes(right)))
    throw new Problem(
      403,
      'FORBIDDEN',
      'You have lost a role or label since the first request, so its response cannot be replayed.',
    )
}
