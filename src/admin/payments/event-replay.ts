import { api, fetchData } from '../api/client'
import type { ProviderEvent } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { showNotice } from '../ui/notices'
import { refreshPayments } from './payment-queries'
import { labelOfState } from './provider-event-states'

const MAX_EVENTS = 1_000

/** Applies an event of a provider again. Returns what came of it. */
export async function replayEvent(id: string): Promise<ProviderEvent> {
  const event = await fetchData(api.POST('/api/payments/events/{id}/replay', { params: { path: { id } } }))
  await refreshPayments()
  return event
}

/** Returns what came of an event in words. */
export const describeOutcome = ({ status, outcome }: ProviderEvent) =>
  outcome ? `${labelOfState(status)}: ${outcome}` : labelOfState(status)

/** Applies events one after the other, the oldest first, and says what came of them. */
export async function replayAll(ids: readonly string[]) {
  const counts = new Map<string, number>()
  try {
    for (const id of ids) {
      const { status } = await fetchData(api.POST('/api/payments/events/{id}/replay', { params: { path: { id } } }))
      counts.set(status, (counts.get(status) ?? 0) + 1)
    }
  } finally {
    await refreshPayments()
  }
  const words = [...counts].map(([status, count]) => `${count} ${labelOfState(status as never).toLowerCase()}`)
  showNotice(`${ids.length === 1 ? 'The event was' : `${ids.length} events were`} replayed: ${words.join(', ')}.`)
}

/** Applies all events again that failed or wait, after a confirmation. */
export async function replayFailed(): Promise<void> {
  const events = await fetchData(
    api.GET('/api/payments/events', {
      params: { query: { status: 'failed,parked', sort: 'created', limit: MAX_EVENTS } },
    }),
  )
  if (!events.length) {
    showNotice('No event has failed, and none waits.')
    return
  }
  const isConfirmed = await confirmAction({
    title: `Replay ${events.length === 1 ? 'one event' : `${events.length} events`}?`,
    text: 'Each is applied again, the oldest first. Nothing is applied twice.',
    action: `Replay ${events.length === 1 ? 'it' : events.length}`,
  })
  if (isConfirmed) await replayAll(events.map(({ _id }) => _id))
}
