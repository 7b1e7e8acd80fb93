/** The places of plans and what is paid for them. */
export const paymentRoutes = [] as const
