/** Jobs: a provider is told what a subscription costs from now on, or that it ended. */
export const REPRICE_JOB = 'payments-reprice'
export const CANCEL_JOB = 'payments-cancel'
/** What is at a provider though nobody here goes by it: it ends there. */
export const CANCEL_ORPHANED_JOB = 'payments-call-off'
/** What time brings to a subscription. */
export const LIFECYCLE_JOB = 'payments-time'
