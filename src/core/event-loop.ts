/** Others get their turn: what takes no time for the event loop, such as reading a file of SQLite, would go on and on. */
export const yieldToEventLoop = () => new Promise<void>((resolve) => void setImmediate(resolve))
