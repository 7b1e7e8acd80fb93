import type { PublicCtx } from '../../accounts/context'
import { tooManyRequests } from '../../core/problem'
import { clientNetwork } from '../../tenancy/client-connection'

const MAX_STREAMS_PER_CALLER = 100 // streams at a time
const MAX_STREAMS_PER_TENANT = 10_000
const RETRY_AFTER_SECONDS = 10 // s

const streamCounts = new Map<string, number>()

/** Reserves a place for a stream and returns the function that releases it. @throws 429 */
export function acquireStream({ tenant, actor }: PublicCtx, request: Request): () => void {
  const tenantKey = `${tenant} `
  const callerKey = `${tenant} ${actor?.user ?? `at ${clientNetwork(request)}`}`
  const countOf = (name: string) => streamCounts.get(name) ?? 0
  if (countOf(callerKey) >= MAX_STREAMS_PER_CALLER)
    tooManyRequests(
      RETRY_AFTER_SECONDS,
      `You have ${MAX_STREAMS_PER_CALLER} open change streams, which is the maximum. Close one.`,
    )
  if (countOf(tenantKey) >= MAX_STREAMS_PER_TENANT)
    tooManyRequests(
      RETRY_AFTER_SECONDS,
      `This tenant has ${MAX_STREAMS_PER_TENANT} open change streams, which is the maximum.`,
    )
  for (const name of [tenantKey, callerKey]) streamCounts.set(name, countOf(name) + 1)
  return () => {
    for (const name of [tenantKey, callerKey]) {
      if (countOf(name) > 1) streamCounts.set(name, countOf(name) - 1)
      else streamCounts.delete(name)
    }
  }
}

/** Returns the number of open streams of this process. */
export const countStreams = () =>
  [...streamCounts].reduce((sum, [name, count]) => (name.endsWith(' ') ? sum + count : sum), 0)
