import '../src/app'
import { exposeMetrics } from '../src/operations/metrics/exposition'

/** Returns the metrics of this process, as Prometheus reads them. */
export const readMetricsText = async (): Promise<string> => (await exposeMetrics()).text()
