/**
 * Lets other work of the event loop run first. A loop over synchronous work, such as reads of SQLite, would block it
 * otherwise.
 */
export const yieldToEventLoop = () => new Promise<void>((resolve) => void setImmediate(resolve))

/**
 * Starts to measure whether work holds the thread. Returns a function that ends this, and returns how long (ms) the work
 * held it: 0 when other work ran in between.
 */
export function measureThreadHold(): () => number {
  const startedAt = performance.now()
  let isHeld = true
  const turn = setImmediate(() => {
    isHeld = false
  })
  return () => {
    clearImmediate(turn)
    return isHeld ? performance.now() - startedAt : 0
  }
}
