/** What server processes ask each other. */
export const PROCESS_TOPICS = { metrics: 'metrics', log: 'log', state: 'state' } as const
