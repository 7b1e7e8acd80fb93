import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { PluginChange } from '../../api/schema'

const DELIVERIES_INTERVAL_MS = 2_000
const DELIVERIES_SHOWN = 100
const MAX_REPLAYS = 1_000

const idParams = (id: string) => ({ path: { id } })

/** The states of a delivery. */
export const DELIVERY_STATES = ['waiting', 'failing', 'delivered', 'dead', 'canceled'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** All plugins by name, for choices. */
export const pluginsQuery = queryOptions({
  queryKey: ['plugins', 'all'],
  queryFn: () => fetchData(api.GET('/api/plugins', { params: { query: { limit: 1_000, sort: 'name' } } })),
})

/** One plugin. Its health changes by itself. */
export const pluginQuery = (id: string) =>
  queryOptions({
    queryKey: ['plugins', 'one', id],
    queryFn: () => fetchData(api.GET('/api/plugins/{id}', { params: idParams(id) })),
    refetchInterval: 2 * DELIVERIES_INTERVAL_MS,
  })

const fetchDeliveries = (id: string, limit: number, state?: DeliveryState) =>
  fetchData(
    api.GET('/api/plugins/{id}/deliveries', { params: { ...idParams(id), query: { limit, ...(state && { state }) } } }),
  )

/** The last deliveries to a plugin; it follows new ones while somebody looks. */
export const deliveriesQuery = (id: string, state?: DeliveryState) =>
  queryOptions({
    queryKey: ['plugins', 'deliveries', id, state ?? ''],
    queryFn: () => fetchDeliveries(id, DELIVERIES_SHOWN, state),
    refetchInterval: DELIVERIES_INTERVAL_MS,
  })

const refreshDeliveries = (id: string) => queryClient.invalidateQueries({ queryKey: ['plugins', 'deliveries', id] })

const sendReplay = (id: string, deliveryId: string) =>
  fetchData(api.POST('/api/plugins/{id}/deliveries/{deliveryId}/replay', { params: { path: { id, deliveryId } } }))

/** Sends a delivery again. @throws ApiProblem */
export async function replayDelivery(id: string, deliveryId: string) {
  await sendReplay(id, deliveryId)
  await refreshDeliveries(id)
}

/** Sends all deliveries again that were given up, the oldest first, and returns how many. @throws ApiProblem */
export async function replayDeadDeliveries(id: string, onProgress: (done: number, total: number) => void) {
  const dead = (await fetchDeliveries(id, MAX_REPLAYS, 'dead')).reverse()
  try {
    for (const [n, { _id: deliveryId }] of dead.entries()) {
      onProgress(n, dead.length)
      await sendReplay(id, deliveryId)
    }
  } finally {
    await refreshDeliveries(id)
  }
  return dead.length
}

/** Changes a plugin. @throws ApiProblem */
export async function changePlugin(id: string, body: PluginChange) {
  const changed = await fetchData(api.PATCH('/api/plugins/{id}', { params: idParams(id), body }))
  queryClient.setQueryData(pluginQuery(id).queryKey, changed)
  await Promise.all(
    [
      ['plugins', 'list'],
      ['plugins', 'all'],
    ].map((queryKey) => queryClient.invalidateQueries({ queryKey })),
  )
  return changed
}
