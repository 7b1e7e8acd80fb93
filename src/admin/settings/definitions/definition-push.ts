import { api, fetchData } from '../../api/client'
import { ApiProblem, type ProblemDetail } from '../../api/problem'
import type { DefinitionPush } from '../../api/schema'
import type { DefinitionChange, DefinitionFolder } from './definition-folder'

/** Returns the definitions of the tenant. */
export const fetchDefinitions = () => fetchData(api.GET('/api/definitions'))

/** Returns what a push would change. */
export const fetchPlan = ({ files, versions }: DefinitionFolder, prune: boolean) =>
  fetchData(api.POST('/api/definitions/diff', { body: { files, versions, prune } }))

export type PushProgress = { done: number; remaining: number }

/** Pushes until nothing remains, and returns all changes that were made. @throws ApiProblem, ConnectionLost */
export async function pushDefinitions(
  body: DefinitionPush,
  onProgress: (progress: PushProgress) => void,
): Promise<DefinitionChange[]> {
  const changes: DefinitionChange[] = []
  let { versions = {} } = body
  for (;;) {
    const pushed = await fetchData(api.POST('/api/definitions/push', { body: { ...body, versions } }))
    changes.push(...pushed.changes)
    versions = mergeVersions(versions, pushed.versions)
    onProgress({ done: changes.length, remaining: pushed.remaining })
    if (!pushed.remaining) return changes
  }
}

type PartialPush = { versions?: Record<string, string | null>; errors?: ProblemDetail[] }

/** Returns what a refused push has made before, and the flaws that were found. */
export function readFailure(error: unknown): { versions: Record<string, string | null>; flaws: ProblemDetail[] } {
  if (!(error instanceof ApiProblem)) return { versions: {}, flaws: [] }
  const { versions = {}, errors } = (error.details ?? {}) as PartialPush
  return { versions, flaws: Array.isArray(errors) ? errors : error.fieldErrors }
}

/** Returns versions after a push. Those that are null are of things that are gone. */
export function mergeVersions(versions: Record<string, string>, changed: Record<string, string | null>) {
  const merged = Object.entries({ ...versions, ...changed })
  return Object.fromEntries(merged.filter((entry): entry is [string, string] => entry[1] !== null))
}
