/** Jobs: a provider is told what a subscription costs from now on, or that it ended. */
export const REPRICE = 'payments-reprice'
export const CANCEL = 'payments-cancel'
