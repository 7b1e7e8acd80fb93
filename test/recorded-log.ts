import { spyOn } from 'bun:test'
import { log, logOutput } from '../src/core/log'

/** Records the warnings and errors that this process logs until the end of the block. */
export function recordLog() {
  const before = log.level
  log.level = 'warn'
  const writing = spyOn(logOutput, 'write')
  return {
    /** Returns the lines of a code or an event. */
    find: (name: string) =>
      writing.mock.calls.map(([line]) => JSON.parse(line)).filter(({ what, event }) => (what ?? event) === name),
    [Symbol.dispose]() {
      writing.mockRestore()
      log.level = before
    },
  }
}
