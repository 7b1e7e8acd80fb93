import { StateTag } from '../ui/state-tag'
import type { HostRow } from './host-rows'

const STATES = {
  served: ['Served', 'good'],
  unproven: ['Not proven yet', 'warning'],
  taken: ['Taken', 'bad'],
  local: ['This computer', 'neutral'],
} as const

/** The state of a host as a tag. */
export const HostState = ({ state }: Pick<HostRow, 'state'>) => (
  <StateTag label={STATES[state][0]} tone={STATES[state][1]} />
)
