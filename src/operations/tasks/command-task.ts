import { runCommandProcess } from '../../backups/command-process'
import type { PreparedTask } from './task-kind'

/** Returns a task that runs a command in a process of its own, and takes its result from the command's JSON. */
export const toCommandTask = <Output, Result>(
  args: string[],
  toResult: (output: Output) => Result,
): PreparedTask<Result> => ({
  run: async ({ onProgress, onFraction, signal }) => {
    const report = (step: string, fraction?: number) => {
      onProgress(describeStep(step))
      onFraction(fraction ?? null)
    }
    return toResult(await runCommandProcess<Output>(args, { onProgress: report, signal }))
  },
  [Symbol.asyncDispose]: async () => {},
})

/** Returns a step of a command as a sentence. Rows of PostgreSQL are counted instead of measured. */
function describeStep(step: string): string {
  const [, rows] = /^copied (\d+) rows$/.exec(step) ?? []
  return rows ? `${rows} rows are copied.` : (STEP_MESSAGES[step] ?? 'The data are being prepared.')
}

const STEP_MESSAGES: Record<string, string> = {
  copying: 'The data are being copied while the tenant is used.',
  'checking and storing': 'The copy is being checked and stored.',
  restoring: 'The backup is being read.',
  preparing: 'The data are being prepared.',
}
