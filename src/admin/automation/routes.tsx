/** The places of what happens by itself. */
export const automationRoutes = [] as const
