/**
 * Repeats work, which must not fail, with a pause before each time (ms), until it is stopped. Then the signal of the work
 * is aborted. `finish` resolves when the work has ended that was running.
 */
export function repeatWork(work: (signal: AbortSignal) => Promise<unknown>, pauseMs: number, firstPauseMs = pauseMs) {
  const stopping = new AbortController()
  let [timer, running]: [Timer | undefined, Promise<unknown> | undefined] = [undefined, undefined]
  const schedule = (ms: number) => {
    timer = setTimeout(() => {
      running = work(stopping.signal).finally(() => stopping.signal.aborted || schedule(pauseMs))
    }, ms).unref()
  }
  schedule(firstPauseMs)
  const stop = () => {
    clearTimeout(timer)
    stopping.abort()
  }
  return { stop, finish: async () => running }
}
