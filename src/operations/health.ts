import { Elysia, t } from 'elysia'

/** What a load balancer asks. Outside `/api`: it concerns no tenant. */
export const healthRoutes = new Elysia({ tags: ['operations'] }).get('/health', () => ({ status: 'ok' as const }), {
  detail: { 'x-access': 'open', operationId: 'checkHealth', summary: 'Check the health of the process' } as object,
  response: t.Object({ status: t.Literal('ok') }),
})
