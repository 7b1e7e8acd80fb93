/** How many ms a read may take before it counts as costly: on the thread, and waiting for the database. */
export const freeReadMs = { thread: 2.5, waiting: 200 }

/** How many costly reads may be under way. */
export const COSTLY_READ_LIMITS = { perTenant: 200, perCaller: 50 }
