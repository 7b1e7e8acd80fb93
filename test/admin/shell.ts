/** Runs a command as a person pastes it into a shell, and returns what it prints. @throws when it fails */
export async function runShell(command: string): Promise<string> {
  const child = Bun.spawn(['sh', '-c', command.replace(/^curl/, 'curl -s')], { stdout: 'pipe', stderr: 'pipe' })
  const [output, problem, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (code !== 0) throw new Error(`${command}\n${problem}`)
  return output
}
