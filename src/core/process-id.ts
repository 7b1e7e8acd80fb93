/** This process, among those that share a database. */
export const PROCESS_ID = crypto.randomUUID()
