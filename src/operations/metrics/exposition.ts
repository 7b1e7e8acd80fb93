import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client'
import { askOtherProcesses } from '../../core/server-processes'
import { PROCESS_TOPICS } from '../process-topics'
import { metricRegistry } from './collected-metrics'
import { defineDatabaseMetrics } from './database-metrics'
import { defineJobMetrics } from './job-metrics'
import { defineProcessMetrics } from './process-metrics'
import { defineRequestMetrics } from './request-metrics'

defineRequestMetrics()
defineDatabaseMetrics()
defineJobMetrics()
defineProcessMetrics()

type ProcessMetrics = MetricObjectWithValues<MetricValue<string>>[]

/** Returns the metrics of this process, for another one that adds them to its own. */
export const collectMetrics = (): Promise<ProcessMetrics> => metricRegistry.getMetricsAsJSON()

/** Returns the metrics of all server processes in the text format of Prometheus. */
export async function exposeMetrics(): Promise<Response> {
  const others = await askOtherProcesses<ProcessMetrics>(PROCESS_TOPICS.metrics)
  const all = others.length ? AggregatorRegistry.aggregate([await collectMetrics(), ...others]) : metricRegistry
  return new Response(await all.metrics(), {
    headers: { 'content-type': metricRegistry.contentType, 'cache-control': 'no-store' },
  })
}
