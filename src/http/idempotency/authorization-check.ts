import { Problem } from '../../core/problem'

/** Requests that the guard is to judge without any work being done, and whether it admitted them. */
const pendingChecks = new WeakMap<Request, boolean>()

/**
 * Asks the guard about a request that was worked on before. Answers its refusal, or nothing when it admits the caller.
 * `work` must lead through the guard, which ends it before anything is read or done.
 */
export async function checkAuthorization(request: Request, work: (request: Request) => Promise<Response>) {
  pendingChecks.set(request, false)
  const response = await work(request)
  const admitted = pendingChecks.get(request)
  pendingChecks.delete(request)
  return admitted ? undefined : response
}

/** To be called by the guard with whom it admits. @throws where the verdict is all that was asked for */
export function endAuthorizationCheck(request: Request) {
  if (!pendingChecks.has(request)) return
  pendingChecks.set(request, true)
  throw new Problem(409, 'IDEMPOTENCY_REPLAY', 'This request was already answered.')
}

/** @throws 403 FORBIDDEN for a caller who has since lost a role or label by which the first request may have been allowed */
export function assertRightsStillHeld(held: string[], needed: string[]) {
  if (needed.some((right) => !held.includes(right)))
    throw new Problem(
      403,
      'FORBIDDEN',
      'You have lost a role or label since the first request, so its response cannot be replayed.',
    )
}
