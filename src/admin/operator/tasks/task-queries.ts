import { queryOptions } from '@tanstack/react-query'
import { fetchData } from '../../api/client'
import type { OperatorTask } from '../../api/schema'
import { operatorApi } from '../operator-api'
import type { TaskKindName, TaskOf } from './task-kind'

const POLL_INTERVAL_MS = 700
const LATEST_TASKS = 10

/** Whether a task is under way. */
export const isRunning = (task: OperatorTask | null | undefined) => task?.status === 'running'

/** The homes of tenants, and which of them can be used. */
export const homesQuery = queryOptions({
  queryKey: ['operator', 'homes'],
  queryFn: () => fetchData(operatorApi.GET('/operator/homes')),
})

/**
 * The latest task of a tenant that is of one of these kinds; null when there was none lately. It is followed while it is
 * under way, or about to begin.
 */
export const latestTaskQuery = <Name extends TaskKindName>(tenant: string, kinds: Name[], isStarting: boolean) =>
  queryOptions({
    queryKey: ['operator', 'tasks', kinds, tenant],
    queryFn: async () => {
      const query = kinds.length > 1 ? { tenant, limit: LATEST_TASKS } : { tenant, kind: kinds[0], limit: 1 }
      const tasks = await fetchData(operatorApi.GET('/operator/tasks', { params: { query } }))
      return tasks.find((task): task is TaskOf<Name> => kinds.some((kind) => kind === task.kind)) ?? null
    },
    refetchInterval: ({ state }) => (isStarting || isRunning(state.data) ? POLL_INTERVAL_MS : false),
  })

/** The latest tasks of all tenants, followed while one of them is under way. */
export const latestTasksQuery = queryOptions({
  queryKey: ['operator', 'tasks', 'latest'],
  queryFn: () => fetchData(operatorApi.GET('/operator/tasks', { params: { query: { limit: LATEST_TASKS } } })),
  refetchInterval: ({ state }) => (state.data?.some(isRunning) ? POLL_INTERVAL_MS : false),
})
