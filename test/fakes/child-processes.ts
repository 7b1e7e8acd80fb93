import { readdirSync, readFileSync } from 'node:fs'

/** The processes that a process has started and that have not ended, where the system tells (Linux). */
export function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid && /^[^Z] (\d+)/.exec(stateOf(pid))?.[1] === `${parent}`)
}

/** The child processes of this one that run lambdas. Other test files of this process may have started others. */
export const lambdaProcesses = () =>
  childrenOf(process.pid).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('lambdas/sandbox/process-main')
    } catch {
      return false // It ended meanwhile.
    }
  })

/** Whether a process is there. */
export const isRunning = (pid: number) => /^[^Z]/.test(stateOf(pid))

/** Its state, its parent and more (proc(5)); nothing where there is none. */
function stateOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '')
  } catch {
    return ''
  }
}

/** The memory of a process that is in use, in MB. */
export const memoryOf = (pid: number) =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)
