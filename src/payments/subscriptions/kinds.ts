/** Jobs: a provider is told what a subscription costs from now on, or that it ended. */
export const REPRICE = 'payments-reprice'
export const CANCEL = 'payments-cancel'
/** What is at a provider though nobody here goes by it: it ends there. */
export const CALL_OFF = 'payments-call-off'
/** What time brings to a subscription. */
export const TIME = 'payments-time'
