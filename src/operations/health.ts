import { Elysia, t } from 'elysia'

/** The health check for load balancers. It is outside `/api`, because it concerns no tenant. */
export const healthRoutes = new Elysia({ tags: ['operations'] }).get('/health', () => ({ status: 'ok' as const }), {
  detail: { 'x-access': 'open', operationId: 'checkHealth', summary: 'Check the health of the process' } as object,
  response: t.Object({ status: t.Literal('ok') }),
})
