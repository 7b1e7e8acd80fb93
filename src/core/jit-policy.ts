const CHECK_INTERVAL_MS = 200
const IDLE_USE_US = 4_000 // of the processor, between two checks
const START_WORK_US = 300_000
const START_REQUESTS = 100

/** Lets code be compiled as usual. In a binary, what starts a process hardly is, because most of its code runs only once. */
export const endStartPolicy = () => Bun.unsafe.setJITPolicy(1)

let requestsLeft = START_REQUESTS

/** Counts a request, which is work. */
export function noteRequest() {
  if (requestsLeft && !--requestsLeft) endStartPolicy()
}

/**
 * Lets code be compiled as usual as soon as there is work: requests, or anything that takes the processor. An idle server
 * has neither compiled code nor the compilers in memory.
 */
export function endStartPolicyWithWork() {
  let worked = 0
  let before = process.cpuUsage()
  const timer = setInterval(() => {
    const now = process.cpuUsage()
    worked += Math.max(0, now.user - before.user - IDLE_USE_US)
    before = now
    if (requestsLeft && worked < START_WORK_US) return
    clearInterval(timer)
    endStartPolicy()
  }, CHECK_INTERVAL_MS).unref()
}
