import { badRequest } from '../core/problem'

/** A password that must not stand on the command line: asked for on a terminal, else the first line of standard input. */
export async function readPassword(option: string): Promise<string> {
  if (process.stdin.isTTY) return prompt('Password:') ?? ''
  const [line = ''] = (await Bun.stdin.text()).split('\n')
  return (
    line.replace(/\r$/, '') ||
    badRequest({ path: option, message: `${option} is required, or the password on standard input.` })
  )
}
