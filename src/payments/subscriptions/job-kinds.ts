/** Sends the current price of a subscription to its provider. */
export const REPRICE_JOB = 'payments-reprice'
/** Cancels a subscription at its provider. */
export const CANCEL_JOB = 'payments-cancel'
/** Cancels a checkout or a subscription at a provider that is not used here. */
export const CANCEL_ORPHANED_JOB = 'payments-call-off'
/** Reconciles a subscription with its provider, and ends it when its time is up. */
export const LIFECYCLE_JOB = 'payments-time'
