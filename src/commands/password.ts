import { badRequest } from '../core/problem'

/**
 * Reads a password that should not be on the command line: asks for it on a terminal, else reads the first line of
 * standard input.
 * @throws 400 INVALID_INPUT when standard input has none
 */
export async function readPassword(option: string): Promise<string> {
  if (process.stdin.isTTY) return prompt('Password:') ?? ''
  const [line = ''] = (await Bun.stdin.text()).split('\n')
  return (
    line.replace(/\r$/, '') ||
    badRequest({ path: option, message: `${option} is required, unless standard input provides the password.` })
  )
}
