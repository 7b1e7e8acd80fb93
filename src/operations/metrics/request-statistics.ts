import { DURATION_BOUNDS, Histogram } from '../../core/histogram'
import type { RequestNotes } from '../../core/request-log'
import { toKnownMethod } from '../../core/request-trace'
import { RecentRequests } from './recent-requests'

type RouteStatistics = { durations: Histogram; statuses: Map<number, number> }

/** The requests that this process answered, by route and method. Paths without a route are one route. */
export const requestStatistics = new Map<string, Map<string, RouteStatistics>>()
export const recentRequests = new RecentRequests()

/** What a server process counted in the last whole minute: requests by their duration, and answers with 5xx. */
export type MinuteCounts = { durations: number[]; errors: number }

/** Returns what this process counted in the last whole minute. */
export function countLastMinute(): MinuteCounts {
  const { durations, errors } = recentRequests.getLastMinute()
  return { durations: durations.counts, errors }
}

/** Counts an answered request. It runs at each request, so it only adds to numbers. */
export function recordRequest({ started, route = 'unknown', tenant }: RequestNotes, method: string, status: number) {
  const time = performance.now()
  const seconds = (time - started) / 1_000
  const { durations, statuses } = requestStatistics.get(route)?.get(method) ?? addRoute(route, toKnownMethod(method))
  durations.record(seconds)
  statuses.set(status, (statuses.get(status) ?? 0) + 1)
  recentRequests.record(time, seconds, status, tenant)
}

function addRoute(route: string, method: string): RouteStatistics {
  const byMethod = requestStatistics.get(route) ?? new Map<string, RouteStatistics>()
  const statistics = byMethod.get(method) ?? { durations: new Histogram(DURATION_BOUNDS), statuses: new Map() }
  requestStatistics.set(route, byMethod.set(method, statistics))
  return statistics
}
