import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { app } from '../../src/app'
import { config } from '../../src/config'
import { createTenant } from '../../src/tenancy/tenants'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../property-runner'
import { callApi, withoutRateLimits } from '../test-tenant'
import { createRandom, createRequest, sendRequest } from './random-requests'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)

const ROOT = 'the-operator-token-of-hostile-requests'
const ORIGIN = 'http://localhost'

const routes = app.routes.filter(
  ({ path, method }) =>
    path.startsWith('/operator/') &&
    !/^\/operator\/(clock|jobs\/run)$/.test(path) && // only with ATOLL_TEST_CLOCK
    method !== 'ALL' &&
    method !== 'WS',
)

let ids: string[] = []
let readToken = ''
const unlimited = withoutRateLimits()
beforeAll(async () => {
  config.ATOLL_OPERATOR_TOKEN = ROOT
  await prepareTenants()
  const body = { name: `hostile ${crypto.randomUUID()}`, scopes: ['read'] }
  const headers = { authorization: `Bearer ${ROOT}` }
  readToken = (await callApi('POST', `${ORIGIN}/operator/tokens`, { headers, body })).body.token
})
afterAll(() => {
  config.ATOLL_OPERATOR_TOKEN = ''
  unlimited[Symbol.dispose]()
})

/** Creates tenants that the requests may change and delete; no request names another one. */
async function prepareTenants() {
  ids = Array.from({ length: 3 }, () => `h${crypto.randomUUID()}`)
  for (const id of ids) await createTenant(id, [`${id}.test`])
}

const headersOf = (caller: string): Record<string, string> => {
  if (caller === 'guest') return {}
  const token = caller === 'root' ? ROOT : caller === 'reader' ? readToken : 'atlop_wrong'
  return { authorization: `Bearer ${token}` }
}

async function sendRandomRequest(seed: number) {
  const random = createRandom(seed)
  const route = random.pick(routes)
  const caller = random.pick(['guest', 'stranger', 'reader', 'reader', 'root', 'root', 'root', 'root'])
  const request = createRequest(route, random, ids, (folder) => (folder === 'tenants' ? random.pick(ids) : undefined))
  const confirmed = random.chance(0.1) ? [request.query, `confirm=${request.filled.split('/')[3]}`] : [request.query]
  const query = confirmed.filter(Boolean).join('&')
  const { answer, problem } = await sendRequest({ ...request, query }, ORIGIN, headersOf(caller))
  if (problem) return `${caller}: ${problem}`
  const isRead = route.method === 'GET' || route.method === 'HEAD'
  const isAllowed = caller === 'root' || (caller === 'reader' && isRead)
  return !isAllowed && answer.status < 400 ? `${caller}: ${route.method} ${request.filled}: ${answer.status}` : ''
}

test('random requests to the operator with no, a wrong, a reading or the full token get described answers, and no more than they may', async () => {
  let sent = 0
  await checkProperty(
    300,
    fc.asyncProperty(fc.integer(), async (seed) => {
      if (++sent % 100 === 0) await prepareTenants()
      expect(await sendRandomRequest(seed)).toBe('')
    }),
  )
})
