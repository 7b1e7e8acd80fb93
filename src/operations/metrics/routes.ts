import { Elysia } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { isFromOtherOrigin } from '../../http/allowed-origins'
import { isFromLoopback } from '../../tenancy/client-connection'
import { assertOperator } from '../operator-access'

/** @throws 401 UNAUTHENTICATED, 429 RATE_LIMITED for callers on other machines without the operator's token */
async function assertMayRead(request: Request): Promise<void> {
  // A page of anybody may be open in a browser on this machine.
  const isOfPage = request.headers.has('origin') || isFromOtherOrigin(request)
  if (request.headers.has('authorization') || isOfPage || !isFromLoopback(request)) await assertOperator(request)
}

/** The metrics of this process for Prometheus. They are outside `/api`, because they concern no tenant. */
export const metricsRoutes = new Elysia({ tags: ['operations'] }).get(
  '/metrics',
  // The library is loaded only where somebody reads metrics.
  async () => (await import('./exposition')).exposeMetrics(),
  {
    transform: ({ request }: { request: Request }) => assertMayRead(request),
    detail: {
      ...{ 'x-access': 'local', operationId: 'getMetrics', summary: 'Get the metrics of this server for Prometheus' },
      responses: {
        200: {
          description: 'The metrics, in the text format of Prometheus',
          content: { 'text/plain': { schema: { type: 'string' as const } } },
        },
      },
    } as object,
    response: { 401: ProblemShape, 429: ProblemShape },
  },
)
