import { Problem } from '../../core/problem'
import type { Actor } from '../actors'

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

/** What somebody may do here depends on: their roles, and those in the active workspace with its labels. */
export const toRights = (actor: Actor | undefined): string[] => [
  ...(actor?.roles ?? []).map((role) => `role ${role}`),
  ...(actor?.workspace?.roles ?? []).map((role) => `workspace role ${role}`),
  ...(actor?.workspace?.labels ?? []).map((label) => `label ${label}`),
]

/** @throws 403 for who has lost a role or label since, by which they may have been allowed what was done */
export function assertRightsStillHeld(actor: Actor | undefined, rights: string[]) {
  const now = toRights(actor)
  if (rights.some((right) => !now.includes(right)))
    throw new Problem(
      403,
      'FORBIDDEN',
      'You have lost a role or label since the first request, so its response cannot be replayed.',
    )
}
