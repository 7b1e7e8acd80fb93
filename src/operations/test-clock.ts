import { Elysia, t } from 'elysia'
import { moveClock, now, parseIsoDateTime, toIsoString } from '../core/clock'
import { badRequest, ProblemShape } from '../core/problem'
import { time } from '../core/shapes'
import { housekeepingTasks } from '../jobs/housekeeping'
import { runDueJobs } from '../jobs/runner'
import { withLease } from '../jobs/with-lease'
import { getTenant } from '../tenancy/tenants'
import { operatorRoute } from './operator-access'

/** Sets the clock of the installation. @throws 400 INVALID_INPUT for an invalid time */
function changeClock(text: string) {
  const to = parseIsoDateTime(text)
  if (to === undefined)
    badRequest({ path: '/now', message: 'now must be a date and time such as 2026-01-31T12:00:00Z.' })
  moveClock(to)
  return { now: toIsoString(now()) }
}

/**
 * Runs the due jobs and the housekeeping of a tenant now. Returns the number of attempts.
 * @throws 404 TENANT_NOT_FOUND, 403 TENANT_SUSPENDED
 */
async function runTenantJobs(id: string) {
  const tenant = await getTenant(id)
  let ran = await runDueJobs(tenant)
  await withLease(tenant, 'operator', async (held) => {
    for (const task of housekeepingTasks().values()) await task(held)
  })
  ran += await runDueJobs(tenant)
  return { ran }
}

/** Routes for tests that move the clock; they exist only with `ATOLL_TEST_CLOCK`. */
export const testClockRoutes = new Elysia({ prefix: '/operator', tags: ['operations'] })
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
