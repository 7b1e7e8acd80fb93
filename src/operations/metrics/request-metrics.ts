import { countAllOutboundCalls } from '../../core/outbound-calls'
import { outboundStatistics } from '../../core/outbound-request'
import { defineCounter, defineGauge, defineHistogram } from './collected-metrics'
import { recentRequests, requestStatistics } from './request-statistics'

const MAX_TOP_TENANTS = 10
const OUTBOUND_RESULTS = ['2xx', '3xx', '4xx', '5xx', 'failed']

/** Defines the metrics of requests that came in and went out. */
export function defineRequestMetrics() {
  const listRoutes = () =>
    [...requestStatistics].flatMap(([route, byMethod]) =>
      [...byMethod].map(([method, statistics]) => ({ labels: { method, route }, ...statistics })),
    )
  defineCounter(
    'atoll_http_requests_total',
    'The requests that were answered. Paths without a route have the route unknown.',
    ['method', 'route', 'status'],
    () =>
      listRoutes().flatMap(({ labels, statuses }) =>
        [...statuses].map(([status, count]): [Record<string, string | number>, number] => [
          { ...labels, status },
          count,
        ]),
      ),
  )
  defineHistogram(
    'atoll_http_request_duration_seconds',
    'How long requests took until their answer began.',
    ['method', 'route'],
    () => listRoutes().map(({ labels, durations }) => [labels, durations]),
  )
  defineGauge(
    'atoll_top_tenant_requests',
    'The requests of the ten tenants with the most requests in the last whole minute.',
    ['tenant'],
    () => recentRequests.listTopTenants(MAX_TOP_TENANTS).map(([tenant, count]) => [{ tenant }, count]),
  )
  defineCounter(
    'atoll_outbound_requests_total',
    'The requests to other servers, by the class of their status, or failed without an answer.',
    ['result'],
    () => OUTBOUND_RESULTS.map((result) => [{ result }, outboundStatistics.results.get(result) ?? 0]),
  )
  defineHistogram(
    'atoll_outbound_request_duration_seconds',
    'How long requests to other servers took until their answer began.',
    [],
    () => [[{}, outboundStatistics.durations]],
  )
  defineGauge(
    'atoll_outbound_calls',
    'The calls to other servers that are running, and those that wait because their tenant has too many.',
    ['state'],
    () => Object.entries(countAllOutboundCalls()).map(([state, count]) => [{ state }, count]),
  )
}
