/** The places of users, roles and workspaces. */
export const peopleRoutes = [] as const
