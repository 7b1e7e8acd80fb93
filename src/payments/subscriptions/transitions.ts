/** The meaning of an event, independent of the provider. */
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

/** The triggers of transitions: the meanings of providers' events, which our own actions share, and the passing of time. */
export type Trigger =
  | Exclude<EventMeaning, 'updated' | 'voided'>
  | 'checkout abandoned'
  | 'period ended'
  | 'grace ended'

/** All allowed transitions. Other triggers change nothing, so a canceled or expired subscription never comes back. */
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

/** An entity has at most one subscription with one of these statuses. */
export const ACTIVE_STATUSES: Status[] = ['active', 'trialing']
export const TERMINAL_STATUSES: Status[] = ['canceled', 'expired']
export const hasActiveStatus = ({ status }: { status: Status }) => ACTIVE_STATUSES.includes(status)
