import { Elysia, t } from 'elysia'
import { readBearerToken } from '../accounts/actors'
import { config } from '../config'
import { readJson } from '../core/body'
import { moveClock, now, toIsoString } from '../core/clock'
import { isTimingSafeEqual } from '../core/crypto'
import { badRequest, Problem, ProblemShape } from '../core/problem'
import { time } from '../core/shapes'
import { housekeepingTasks } from '../jobs/housekeeping'
import { runDueJobs } from '../jobs/runner'
import { withLease } from '../jobs/with-lease'
import { getTenant } from '../tenancy/tenants'

/** Lets in who knows the operator's token; it belongs to no tenant. */
function assertOperator(request: Request) {
  const token = config.ATOLL_OPERATOR_TOKEN
  if (!token || !request.headers.has('authorization') || !isTimingSafeEqual(readBearerToken(request), token))
    throw new Problem(401, 'UNAUTHENTICATED', 'Send the operator token as Authorization: Bearer ….')
}

/** Another time for every rule about time. @throws 400 */
function changeClock(text: string) {
  const to = Date.parse(text)
  if (Number.isNaN(to))
    badRequest({ path: '/now', message: 'now must be a date and time such as 2026-01-31T12:00:00Z.' })
  moveClock(to)
  return { now: toIsoString(now()) }
}

/** Does all that is due at a tenant now: its jobs, and what is done there now and then. @throws 404, 403 */
async function runTenantJobs(id: string) {
  const tenant = await getTenant(id)
  let ran = await runDueJobs(tenant)
  await withLease(tenant, 'operator', async (held) => {
    for (const task of housekeepingTasks().values()) await task(held)
  })
  ran += await runDueJobs(tenant)
  return { ran }
}

const operatorRoute = (operationId: string, summary: string) => ({
  detail: { 'x-access': 'operator', operationId, summary } as object,
  parse: async ({ request }: { request: Request }) => {
    assertOperator(request)
    return (await readJson(request, config.ATOLL_BODY_LIMIT)) ?? null
  },
  // Without a body there is nothing to parse.
  transform: async ({ request }: { request: Request }) => assertOperator(request),
})

/** For tests that move the clock; there only with `ATOLL_TEST_CLOCK`. */
export const operatorRoutes = new Elysia({ prefix: '/operator', tags: ['operations'] })
  .post('/clock', ({ body }) => changeClock(body.now), {
    ...operatorRoute('setClock', 'Move the clock of the installation'),
    body: t.Object({ now: time }),
    response: { 200: t.Object({ now: time }), 401: ProblemShape },
  })
  .post('/jobs/run', ({ body }) => runTenantJobs(body.tenant), {
    ...operatorRoute('runJobs', 'Run the due jobs of a tenant'),
    body: t.Object({ tenant: t.String() }),
    response: {
      200: t.Object({ ran: t.Number({ description: 'number of attempts' }) }),
      401: ProblemShape,
      404: ProblemShape,
    },
  })
