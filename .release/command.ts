type Options = { cwd?: string; env?: Record<string, string | undefined> }

/** Runs a program and returns its output. @throws Error with what it printed when it fails */
export async function runCommand(command: string[], { cwd, env = process.env }: Options = {}): Promise<string> {
  const child = Bun.spawn(command, { cwd, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (code) throw new Error(`${command.join(' ')} ended with ${code}.\n${out}${err}`)
  return out
}
