import type { Meaning } from '../providers/provider'

export type Status = 'pending' | 'active' | 'trialing' | 'past_due' | 'canceled' | 'expired'

/** What moves a subscription: the words of the providers' events, which are also ours, and what time brings. */
export type Trigger = Exclude<Meaning, 'updated' | 'voided'> | 'checkout abandoned' | 'period ended' | 'grace ended'

/** All moves that there are. What is not named here changes nothing: who is canceled or expired never comes back. */
export const moves: Record<Status, Partial<Record<Trigger, Status>>> = {
  pending: {
    activated: 'active',
    trial: 'trialing',
    paid: 'active',
    'payment failed': 'pending',
    canceled: 'canceled',
    expired: 'expired',
    'checkout abandoned': 'expired',
  },
  active: {
    activated: 'active',
    trial: 'trialing',
    paid: 'active',
    'payment failed': 'past_due',
    canceled: 'canceled',
    expired: 'expired',
    'period ended': 'canceled',
  },
  trialing: {
    activated: 'active',
    trial: 'trialing',
    paid: 'active',
    'payment failed': 'past_due',
    canceled: 'canceled',
    expired: 'expired',
    'period ended': 'canceled',
  },
  past_due: {
    activated: 'active',
    trial: 'trialing',
    paid: 'active',
    'payment failed': 'past_due',
    canceled: 'canceled',
    expired: 'expired',
    'period ended': 'canceled',
    'grace ended': 'canceled',
  },
  canceled: {},
  expired: {},
}

/** The statuses of which an entity has one at most. */
export const IN_FORCE: Status[] = ['active', 'trialing']
export const ENDED: Status[] = ['canceled', 'expired']
export const isInForce = ({ status }: { status: Status }) => IN_FORCE.includes(status)
