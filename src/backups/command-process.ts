import { environment } from '../config'
import { tryParseJson } from '../core/json'
import { splitLines } from '../core/lines'
import { logOutput } from '../core/log'
import { OWN_COMMAND } from '../core/own-command'
import { Problem } from '../core/problem'
import { lowerPriority } from '../core/process-priority'
import type { BackupControl } from './tenant-backup'

/**
 * Runs a command in a process of its own, with less priority than the server, and returns its JSON. Copying a database
 * file would end the locks of a process that serves it, and work on gigabytes must not delay requests.
 * @throws the failure that the command printed, or the reason of the signal
 */
export async function runCommandProcess<Result>(
  args: string[],
  { onProgress, signal }: BackupControl = {},
): Promise<Result> {
  const child = Bun.spawn([...OWN_COMMAND, ...args, '--json'], {
    env: { ...environment, ATOLL_URL: '' }, // it works on the data here
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const kill = () => child.kill('SIGTERM')
  signal?.addEventListener('abort', kill)
  try {
    lowerPriority(child.pid)
    const printed = child.stdout.text()
    let failure: unknown
    for await (const line of splitLines(child.stderr)) {
      const value = tryParseJson(line) as { step?: string; done?: number; code?: string } | undefined
      if (value?.step) onProgress?.(value.step, value.done)
      else if (value?.code) failure = value
      else if (value) logOutput.write(`${line}\n`) // a line of its log
    }
    await child.exited
    signal?.throwIfAborted()
    const result = tryParseJson(await printed)
    if (result !== undefined) return result as Result
    throw new CommandFailed(failure)
  } finally {
    signal?.removeEventListener('abort', kill)
    if (child.exitCode === null) child.kill('SIGKILL')
  }
}

/** A command ended with a failure, whose code and message this has. */
export class CommandFailed extends Problem {
  constructor(failure: unknown) {
    const { code, message } = (failure ?? {}) as { code?: string; message?: string }
    super(
      409,
      code ?? 'INTERNAL',
      message ?? 'The command ended unexpectedly. The log of the server may have the reason.',
    )
  }
}
