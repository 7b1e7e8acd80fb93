import { readdirSync, readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { basename } from 'node:path'

const LOW_PRIORITY = 10 // on Linux, the priority of its reads and writes follows

/** Lets a process give way to others, if it does not so already. */
export function lowerPriority(pid: number) {
  for (const thread of listThreads(pid))
    try {
      if (getPriority(thread) < LOW_PRIORITY) setPriority(thread, LOW_PRIORITY)
    } catch {
      // It has ended, or the system does not allow it; the work only competes more with requests.
    }
}

const LOWEST_PRIORITY = 19

/** Lets the calling thread give way to the others of its process. Only Linux has a priority for each thread. */
export function lowerThreadPriority() {
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')))
    setPriority(thread, Math.min(getPriority(thread) + LOW_PRIORITY, LOWEST_PRIORITY))
  } catch {
    // Then it competes with them.
  }
}

/** Returns the ids of a process's threads: Linux has a priority for each. Threads that start later inherit it. */
function listThreads(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number)
  } catch {
    return [pid]
  }
}
