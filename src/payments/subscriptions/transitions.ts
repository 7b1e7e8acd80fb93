/** What an event is about, in the same words for all providers. */
export type EventMeaning =
  | 'activated'
  | 'trial'
  | 'updated'
  | 'paid'
  | 'payment failed'
  | 'canceled'
  | 'expired'
  | 'voided'

export type Status = 'pending' | 'active' | 'trialing' | 'past_due' | 'canceled' | 'expired'

/** What moves a subscription: the words of the providers' events, which are also ours, and what time brings. */
export type Trigger =
  | Exclude<EventMeaning, 'updated' | 'voided'>
  | 'checkout abandoned'
  | 'period ended'
  | 'grace ended'

/** All moves that there are. What is not named here changes nothing: who is canceled or expired never comes back. */
export const TRANSITIONS: Record<Status, Partial<Record<Trigger, Status>>> = {
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
export const ACTIVE_STATUSES: Status[] = ['active', 'trialing']
export const TERMINAL_STATUSES: Status[] = ['canceled', 'expired']
export const hasActiveStatus = ({ status }: { status: Status }) => ACTIVE_STATUSES.includes(status)
