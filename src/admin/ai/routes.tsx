/** The places of agents and their knowledge. */
export const aiRoutes = [] as const
