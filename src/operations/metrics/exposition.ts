import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client'
import { askOtherProcesses, getProcessNumber } from '../../core/server-processes'
import { PROCESS_TOPICS } from '../process-topics'
import { defineBackupMetrics } from './backup-metrics'
import { metricRegistry } from './collected-metrics'
import { defineDatabaseMetrics } from './database-metrics'
import { defineJobMetrics } from './job-metrics'
import { defineProcessMetrics } from './process-metrics'
import { defineRequestMetrics } from './request-metrics'

defineRequestMetrics()
defineDatabaseMetrics()
defineJobMetrics()
defineProcessMetrics()
defineBackupMetrics()

type ProcessMetrics = MetricObjectWithValues<MetricValue<string>>[]

/**
 * Returns the metrics of this process, for one that aggregates those of all. What only grows gets the number of the
 * process, because it begins anew with each process, and a sum would fall.
 */
export async function collectMetrics(): Promise<ProcessMetrics> {
  const metrics: ProcessMetrics = await metricRegistry.getMetricsAsJSON()
  const worker = getProcessNumber()
  const addWorker = (value: MetricValue<string>) => ({ ...value, labels: { ...value.labels, worker } })
  return metrics.map((metric) => (isGauge(metric) ? metric : { ...metric, values: metric.values.map(addWorker) }))
}

const isGauge = ({ type }: ProcessMetrics[number]) => String(type) === 'gauge'

/** Returns the metrics of all server processes in the text format of Prometheus. */
export async function exposeMetrics(): Promise<Response> {
  const others = await askOtherProcesses<ProcessMetrics>(PROCESS_TOPICS.metrics)
  const all = getProcessNumber() ? AggregatorRegistry.aggregate([await collectMetrics(), ...others]) : metricRegistry
  return new Response(await all.metrics(), {
    headers: { 'content-type': metricRegistry.contentType, 'cache-control': 'no-store' },
  })
}
