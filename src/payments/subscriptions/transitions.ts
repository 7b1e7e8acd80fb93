/**
 * The meaning of an event, independent of the provider. A meaning is also a trigger of `TRANSITIONS`, except `updated`, whose
 * trigger follows from the reported status, and `voided`, which changes no subscription.
 */
export type EventMeaning =
  /** The subscription begins, or is in force again. It becomes active, with the reported period, or else a computed one. */
  | 'activated'
  /** A trial begins or goes on until `trialEndsAt`. */
  | 'trial'
  /** Something changed. The reported `status` decides the trigger; without one, the status stays and the fields are stored. */
  | 'updated'
  /** A payment arrived. `invoice` is stored as paid, and the period moves on. An amount of 0 activates nothing. */
  | 'paid'
  /**
   * A payment failed. `invoice` is stored as open, and a subscription in force is overdue. A pending one stays pending, unless
   * its reported status is `past_due`.
   */
  | 'payment failed'
  /** The subscription ended for good. A pause at the provider counts as an end, too. */
  | 'canceled'
  /** The subscription, or its checkout, ended by time. The end of a checkout that was paid or replaced changes nothing. */
  | 'expired'
  /** `invoice` will not be collected any more, and is stored as void. The subscription stays as it is. */
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
export const hasEnded = ({ status }: { status: Status }) => TERMINAL_STATUSES.includes(status)
