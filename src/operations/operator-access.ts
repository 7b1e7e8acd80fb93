import { readBearerToken } from '../accounts/actors'
import { config } from '../config'
import { readJson } from '../core/body'
import { isTimingSafeEqual } from '../core/crypto'
import { Problem, tooManyRequests } from '../core/problem'
import { RateLimiter } from '../core/rate-limiter'
import { noteUser } from '../core/request-log'
import { clientNetwork } from '../tenancy/client-connection'
import { nameOperator } from '../tenancy/operator-events'
import { findToken, scopeOfRequest } from './operator-tokens'
import type { OperatorToken } from './shapes'

const MAX_WRONG_TOKENS = 20 // a network and minute
const wrongTokens = new RateLimiter(MAX_WRONG_TOKENS, 60_000)

/**
 * Requires the token of the settings, or one of the operator's that has the scope for the request. They belong to no
 * tenant; nothing of a tenant counts here.
 * @throws 401 UNAUTHENTICATED, 403 FORBIDDEN without the scope, 429 RATE_LIMITED for another wrong token after too many
 */
export async function assertOperator(request: Request): Promise<void> {
  const rootToken = config.ATOLL_OPERATOR_TOKEN
  const sent = readBearerToken(request)
  if (rootToken && sent && isTimingSafeEqual(sent, rootToken)) return
  // Without the setting the operator's addresses are closed.
  const token = rootToken && sent ? await findToken(sent) : undefined
  if (token) return assertScope(request, token)
  // A right token always passes: behind one proxy, all clients may be one network.
  if (rootToken && sent && config.ATOLL_RATE_LIMITS === 'on') countWrongToken(clientNetwork(request))
  throw new Problem(401, 'UNAUTHENTICATED', 'Send the operator token as Authorization: Bearer ….')
}

/** @throws 429 RATE_LIMITED */
function countWrongToken(network: string) {
  const wait = wrongTokens.getWaitMs(network)
  if (wait) tooManyRequests(wait / 1_000, 'Too many wrong tokens were sent.')
  wrongTokens.consume(network)
}

function assertScope(request: Request, { name, scopes }: OperatorToken) {
  noteUser(request, `operator:${name}`)
  nameOperator(name)
  const scope = scopeOfRequest(request.method, new URL(request.url).pathname)
  if (scope && scopes.includes(scope)) return
  const message = scope
    ? `The token "${name}" lacks the scope ${scope}.`
    : 'Only the token of the setting ATOLL_OPERATOR_TOKEN may do this.'
  throw new Problem(403, 'FORBIDDEN', message)
}

/** Returns the options of a route that only the operator may ask. */
export const operatorRoute = (operationId: string, summary: string, description?: string) => ({
  detail: { 'x-access': 'operator', operationId, summary, ...(description && { description }) } as object,
  parse: async ({ request }: { request: Request }) => {
    await assertOperator(request)
    return (await readJson(request, config.ATOLL_BODY_LIMIT)) ?? null
  },
  // `parse` does not run without a body.
  transform: ({ request }: { request: Request }) => assertOperator(request),
})
