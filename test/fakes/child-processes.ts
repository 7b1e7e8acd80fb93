import { readdirSync, readFileSync } from 'node:fs'

/** Returns the child processes of a process that have not ended (Linux only). */
export function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid && /^[^Z] (\d+)/.exec(stateOf(pid))?.[1] === `${parent}`)
}

/**
 * Returns the child processes of this process that run lambdas. Other test files of this process may have started
 * others.
 */
export const lambdaProcesses = () =>
  childrenOf(process.pid).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('lambdas/sandbox/process-main')
    } catch {
      return false // The process has ended meanwhile.
    }
  })

/** Whether a process exists and is not a zombie. */
export const isRunning = (pid: number) => /^[^Z]/.test(stateOf(pid))

/** Returns the state, the parent and more of a process (proc(5)), or an empty string when it does not exist. */
function stateOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '')
  } catch {
    return ''
  }
}

/** Returns the resident memory of a process, in MB. */
export const memoryOf = (pid: number) =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)
