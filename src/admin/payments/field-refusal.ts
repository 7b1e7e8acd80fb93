import { ApiProblem } from '../api/problem'

/** Throws a refusal again; one whose code is about a single field stands at that field. */
export function rethrowAtField(error: unknown, findField: (code: string) => string | undefined): never {
  const field = error instanceof ApiProblem ? findField(error.code) : undefined
  if (!(error instanceof ApiProblem) || !field) throw error
  const { status, code, message, requestId } = error
  throw new ApiProblem(status, code, message, [{ path: `/${field}`, message }], requestId)
}
