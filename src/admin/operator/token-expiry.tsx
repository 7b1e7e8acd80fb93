import type { OperatorToken } from '../api/schema'
import { RelativeTime } from '../ui/relative-time'
import { StateTag } from '../ui/state-tag'

/** When a token expires, or that it has. */
export function TokenExpiry({ expires }: Pick<OperatorToken, 'expires'>) {
  if (!expires) return 'Never'
  return Date.parse(expires) <= Date.now() ? <StateTag label="Expired" tone="bad" /> : <RelativeTime time={expires} />
}
