import type { ProviderEvent } from '../api/schema'
import { StateTag } from '../ui/state-tag'

type Status = ProviderEvent['status']

const STATES: Record<Status, [label: string, tone: 'good' | 'warning' | 'bad' | 'neutral']> = {
  received: ['Received', 'neutral'],
  processed: ['Applied', 'good'],
  ignored: ['Ignored', 'neutral'],
  parked: ['Waiting', 'warning'],
  failed: ['Failed', 'bad'],
}

/** The states with their words, for filters. */
export const PROVIDER_EVENT_STATES = Object.entries(STATES)
  .filter(([value]) => value !== 'received')
  .map(([value, [label]]) => ({ value, label }))

/** Returns the word of a state. */
export const labelOfState = (status: Status) => STATES[status][0]

/** What came of an event. */
export const ProviderEventState = ({ status }: { status: Status }) => {
  const [label, tone] = STATES[status]
  return <StateTag label={label} tone={tone} />
}
