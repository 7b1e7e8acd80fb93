/**
 * Lets other work of the event loop run first. A loop over synchronous work, such as reads of SQLite, would block it
 * otherwise.
 */
export const yieldToEventLoop = () => new Promise<void>((resolve) => void setImmediate(resolve))
