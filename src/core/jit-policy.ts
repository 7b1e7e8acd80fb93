const CHECK_INTERVAL_MS = 200
const IDLE_USE_US = 4_000 // CPU time between two checks
const START_WORK_US = 300_000
const START_REQUESTS = 100

/** Enables the JIT compilers, which a binary starts without because most code of a start runs only once. */
export const enableJit = () => Bun.unsafe.setJITPolicy(1)

let requestsLeft = START_REQUESTS

export function noteRequest() {
  if (requestsLeft && !--requestsLeft) enableJit()
}

/**
 * Enables the JIT compilers under load: after some requests, or other CPU time. An idle server holds neither compiled code nor
 * the compilers in memory.
 */
export function enableJitUnderLoad() {
  let worked = 0
  let before = process.cpuUsage()
  const timer = setInterval(() => {
    const now = process.cpuUsage()
    worked += Math.max(0, now.user - before.user - IDLE_USE_US)
    before = now
    if (requestsLeft && worked < START_WORK_US) return
    clearInterval(timer)
    enableJit()
  }, CHECK_INTERVAL_MS).unref()
}
