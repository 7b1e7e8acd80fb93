import { Elysia, t } from 'elysia'
import { bearerOf } from '../accounts/actors'
import { config } from '../config'
import { readJson } from '../core/body'
import { iso, moveClock, now } from '../core/clock'
import { invalid, Problem, ProblemShape } from '../core/problem'
import { same } from '../core/secret'
import { time } from '../core/shapes'
import { holding } from '../jobs/holding'
import { runDue } from '../jobs/runner'
import { tenantNamed } from '../tenancy/tenants'
import { chores } from './chores'

/** Lets in who knows the operator's token; it belongs to no tenant. */
function admit(request: Request) {
  const token = config.ATOLL_OPERATOR_TOKEN
  if (!token || !request.headers.has('authorization') || !same(bearerOf(request), token))
    throw new Problem(401, 'UNAUTHENTICATED', 'Send the operator token as Authorization: Bearer ….')
}

/** Another time for every rule about time. @throws 400 */
function setClock(moment: string) {
  const to = Date.parse(moment)
  if (Number.isNaN(to)) invalid({ path: '/now', message: 'now must be a moment such as 2026-01-31T12:00:00Z.' })
  moveClock(to)
  return { now: iso(now()) }
}

/** Does all that is due at a tenant now: its jobs, and what is done there now and then. @throws 404, 403 */
async function runJobs(id: string) {
  const tenant = await tenantNamed(id)
  let ran = await runDue(tenant)
  await holding(tenant, 'operator', async (held) => {
    for (const chore of chores) await chore(held)
  })
  ran += await runDue(tenant)
  return { ran }
}

const operator = (operationId: string, summary: string) => ({
  detail: { 'x-access': 'operator', operationId, summary } as object,
  parse: async ({ request }: { request: Request }) => {
    admit(request)
    return (await readJson(request, config.ATOLL_BODY_LIMIT)) ?? null
  },
  // Without a body there is nothing to parse.
  transform: async ({ request }: { request: Request }) => admit(request),
})

/** For tests that move the clock; there only with `ATOLL_TEST_CLOCK`. */
export const operatorRoutes = new Elysia({ prefix: '/operator', tags: ['operations'] })
  .post('/clock', ({ body }) => setClock(body.now), {
    ...operator('setClock', 'Move the clock of the installation'),
    body: t.Object({ now: time }),
    response: { 200: t.Object({ now: time }), 401: ProblemShape },
  })
  .post('/jobs/run', ({ body }) => runJobs(body.tenant), {
    ...operator('runJobs', 'Run the due jobs of a tenant'),
    body: t.Object({ tenant: t.String() }),
    response: { 200: t.Object({ ran: t.Number({ description: 'attempts' }) }), 401: ProblemShape, 404: ProblemShape },
  })
