/** The places of who runs the installation. */
export const operatorRoutes = [] as const
