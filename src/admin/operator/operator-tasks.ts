import { queryOptions } from '@tanstack/react-query'
import { fetchData } from '../api/client'
import type { OperatorTask } from '../api/schema'
import { operatorApi } from './operator-api'

const POLL_INTERVAL_MS = 700
const LATEST_TASKS = 5

/** Whether a task is under way. */
export const isRunning = (task: OperatorTask | null | undefined) => task?.status === 'running'

/** The homes of tenants, and which of them can be used. */
export const homesQuery = queryOptions({
  queryKey: ['operator', 'homes'],
  queryFn: () => fetchData(operatorApi.GET('/operator/homes')),
})

/** The latest move of a tenant; null when there was none. It is followed while it is under way, or about to begin. */
export const latestMoveQuery = (tenant: string, isStarting: boolean) =>
  queryOptions({
    queryKey: ['operator', 'tasks', 'move', tenant],
    queryFn: async () => {
      const query = { tenant, kind: 'move', limit: 1 }
      const [task] = await fetchData(operatorApi.GET('/operator/tasks', { params: { query } }))
      return task ?? null
    },
    refetchInterval: ({ state }) => (isStarting || isRunning(state.data) ? POLL_INTERVAL_MS : false),
  })

/** The latest tasks of all tenants, followed while one of them is under way. */
export const latestTasksQuery = queryOptions({
  queryKey: ['operator', 'tasks', 'latest'],
  queryFn: () => fetchData(operatorApi.GET('/operator/tasks', { params: { query: { limit: LATEST_TASKS } } })),
  refetchInterval: ({ state }) => (state.data?.some(isRunning) ? POLL_INTERVAL_MS : false),
})
