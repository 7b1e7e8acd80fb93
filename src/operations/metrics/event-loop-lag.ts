import { Histogram } from '../../core/histogram'

const INTERVAL_MS = 200

/** How late timers ran, in seconds. */
export const eventLoopLag = new Histogram([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5])

/** Measures how late timers run. Returns a function that ends it. */
export function startLagMeasurement(): () => void {
  let last = performance.now()
  const timer = setInterval(() => {
    const time = performance.now()
    eventLoopLag.record(Math.max(0, time - last - INTERVAL_MS) / 1_000)
    last = time
  }, INTERVAL_MS).unref()
  return () => clearInterval(timer)
}
