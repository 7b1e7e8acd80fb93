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
  /** The provider paused the subscription: it is not in force, nothing is due, and it can be resumed. */
  | 'paused'
  /** The subscription ended for good. */
  | 'canceled'
  /** The subscription, or its checkout, ended by time. The end of a checkout that was paid or replaced changes nothing. */
  | 'expired'
  /** `invoice` will not be collected any more, and is stored as void. The subscription stays as it is. */
  | 'voided'

/**
 * A stored status. Three of them are shown as another one, because clients know six:
 * - `paused` is shown as `expired`. The provider can resume it.
 * - `lapsed` is shown as `canceled`. Its time is up here, and the provider has not confirmed the cancellation yet.
 * - `abandoned` is shown as `expired`. Its checkout was not paid in time, and may still be.
 */
export type Status = ShownStatus | 'paused' | 'lapsed' | 'abandoned'
export type ShownStatus = 'pending' | 'active' | 'trialing' | 'past_due' | 'canceled' | 'expired'

/** The triggers of transitions: the meanings of providers' events, which our own actions share, and the passing of time. */
export type Trigger =
  | Exclude<EventMeaning, 'updated' | 'voided'>
  | 'checkout abandoned'
  | 'period ended'
  | 'grace ended'
  /** Another subscription of the entity came into force. */
  | 'replaced'

type Moves = Partial<Record<Trigger, Status>>

const UNPAID_CHECKOUT: Moves = {
  ...{ activated: 'active', trial: 'trialing', paid: 'active', paused: 'paused' },
  ...{ canceled: 'canceled', expired: 'expired' },
}

const RUNNING: Moves = {
  ...{ activated: 'active', trial: 'trialing', paid: 'active', 'payment failed': 'past_due', paused: 'paused' },
  ...{ canceled: 'canceled', expired: 'expired', 'period ended': 'lapsed' },
}

/** All allowed transitions. Other triggers change nothing, so a canceled or expired subscription never comes back. */
export const TRANSITIONS: Record<Status, Moves> = {
  pending: { ...UNPAID_CHECKOUT, 'payment failed': 'pending', 'checkout abandoned': 'abandoned' },
  abandoned: { ...UNPAID_CHECKOUT, 'payment failed': 'abandoned' },
  active: RUNNING,
  trialing: RUNNING,
  past_due: { ...RUNNING, 'grace ended': 'lapsed', replaced: 'lapsed' },
  paused: {
    ...{ activated: 'active', trial: 'trialing', paid: 'active', 'payment failed': 'past_due', paused: 'paused' },
    ...{ canceled: 'canceled', expired: 'expired' },
  },
  lapsed: {
    ...{ activated: 'active', trial: 'trialing', paid: 'active', 'payment failed': 'lapsed', paused: 'paused' },
    ...{ canceled: 'canceled', expired: 'expired' },
  },
  canceled: {},
  expired: {},
}

const SHOWN_AS: Partial<Record<Status, ShownStatus>> = { paused: 'expired', lapsed: 'canceled', abandoned: 'expired' }

/** Returns the status that clients see. */
export const shownStatus = ({ status }: { status: Status }) => SHOWN_AS[status] ?? (status as ShownStatus)

const ALL_STATUSES = Object.keys(TRANSITIONS) as Status[]
export const SHOWN_STATUSES = ALL_STATUSES.filter((status) => !SHOWN_AS[status]) as ShownStatus[]

/** Returns the stored statuses that are shown as one. */
export const storedStatuses = (shown: string) => ALL_STATUSES.filter((status) => shownStatus({ status }) === shown)

/** An entity has at most one subscription with one of these statuses. */
export const ACTIVE_STATUSES: Status[] = ['active', 'trialing']
export const TERMINAL_STATUSES: Status[] = ['canceled', 'expired']
export const hasActiveStatus = ({ status }: { status: Status }) => ACTIVE_STATUSES.includes(status)
/** Returns whether a subscription has ended for good. */
export const hasEnded = ({ status }: { status: Status }) => TERMINAL_STATUSES.includes(status)
/** Returns whether a subscription is over for its customer, though a payment may still bring it back. */
export const isOver = (row: { status: Status }) =>
  hasEnded(row) || row.status === 'lapsed' || row.status === 'abandoned'
/** Returns whether the checkout of a subscription was not paid yet. */
export const isUnpaidCheckout = ({ status }: { status: Status }) => status === 'pending' || status === 'abandoned'
