import { metricRegistry } from './collected-metrics'
import { defineDatabaseMetrics } from './database-metrics'
import { defineJobMetrics } from './job-metrics'
import { defineProcessMetrics } from './process-metrics'
import { defineRequestMetrics } from './request-metrics'

defineRequestMetrics()
defineDatabaseMetrics()
defineJobMetrics()
defineProcessMetrics()

/** Returns all metrics in the text format of Prometheus. */
export const exposeMetrics = async (): Promise<Response> =>
  new Response(await metricRegistry.metrics(), {
    headers: { 'content-type': metricRegistry.contentType, 'cache-control': 'no-store' },
  })
