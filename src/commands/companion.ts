import { environment } from '../config'
import { badRequest } from '../core/problem'

/**
 * Runs a command beside the server, such as one that serves a page. It ends with the server, and the server with it.
 * @throws 400 for a command that cannot be started
 */
export function runCompanion(command: string[]) {
  const child = startCommand(command)
  process.on('exit', () => child.kill())
  void child.exited.then(() => process.kill(process.pid, 'SIGTERM'))
}

function startCommand(command: string[]) {
  try {
    return Bun.spawn(command, { env: environment, stdio: ['inherit', 'inherit', 'inherit'] })
  } catch (error) {
    const message = `Cannot start "${command[0]}": ${(error as Error).message}`
    return badRequest({ path: 'command', message })
  }
}
