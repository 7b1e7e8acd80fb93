/** The places of settings of the tenant. */
export const settingsRoutes = [] as const
