import { readBearerToken } from '../accounts/actors'
import { config } from '../config'
import { readJson } from '../core/body'
import { isTimingSafeEqual } from '../core/crypto'
import { Problem, tooManyRequests } from '../core/problem'
import { RateLimiter } from '../core/rate-limiter'
import { clientNetwork } from '../tenancy/client-connection'

const MAX_WRONG_TOKENS = 20 // a network and minute
const wrongTokens = new RateLimiter(MAX_WRONG_TOKENS, 60_000)

/**
 * Requires the operator's token, which belongs to no tenant; nothing of a tenant counts here.
 * @throws 401 UNAUTHENTICATED, 429 RATE_LIMITED after too many wrong tokens, whatever is sent then
 */
export function assertOperator(request: Request) {
  const isLimited = config.ATOLL_RATE_LIMITS === 'on'
  const network = clientNetwork(request)
  const wait = isLimited ? wrongTokens.getWaitMs(network) : 0
  if (wait) tooManyRequests(wait / 1_000, 'Too many wrong tokens were sent.')
  const token = config.ATOLL_OPERATOR_TOKEN
  const sent = readBearerToken(request)
  if (token && sent && isTimingSafeEqual(sent, token)) return
  if (token && sent && isLimited) wrongTokens.consume(network)
  throw new Problem(401, 'UNAUTHENTICATED', 'Send the operator token as Authorization: Bearer ….')
}

/** Returns the options of a route that only the operator may ask. */
export const operatorRoute = (operationId: string, summary: string, description?: string) => ({
  detail: { 'x-access': 'operator', operationId, summary, ...(description && { description }) } as object,
  parse: async ({ request }: { request: Request }) => {
    assertOperator(request)
    return (await readJson(request, config.ATOLL_BODY_LIMIT)) ?? null
  },
  // `parse` does not run without a body.
  transform: async ({ request }: { request: Request }) => assertOperator(request),
})
