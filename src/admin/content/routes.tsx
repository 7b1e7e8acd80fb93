/** The places of blocks, components and configurations. */
export const contentRoutes = [] as const
