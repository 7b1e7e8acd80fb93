import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { binaryPath } from '../fakes/binary'
import type { CodeBlock } from './markdown'

/** Returns the programs that documents call and that a machine may lack, as scripts. */
const listPrograms = (): Record<string, string> => ({
  // A command that fails must end the example, and none may wait forever.
  curl: `exec "$REAL_CURL" --silent --show-error --fail-with-body --max-time 20 "$@"`,
  atoll: `exec '${binaryPath()}' "$@"`,
  npx: `exec "$@"`,
})

/** Makes a folder with these programs, and returns a PATH that begins with it. */
function createPath(folder: string) {
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  const programs = listPrograms()
  if (!Bun.which('jq')) programs.jq = `exec '${process.execPath}' '${join(import.meta.dir, 'jq.ts')}' "$@"`
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  return [bin, process.env.PATH].join(delimiter)
}

/** Whether a block is an example that a reader can copy into a shell and that works as it is. */
export const isRunnable = ({ info }: CodeBlock) => info === 'sh'

/** What documents call the server, and where it really is. */
const DOCUMENTED_URL = 'http://localhost:3000'

/** Runs blocks one after the other in one shell, and returns what they printed. @throws with the line of the block that failed */
export async function runBlocks(
  blocks: CodeBlock[],
  { folder, url, env = {} }: { folder: string; url: string; env?: Record<string, string> },
) {
  const script = blocks
    .map(({ code, line }) => `echo "--- line ${line}" >&2\n${code.replaceAll(DOCUMENTED_URL, url)}`)
    .join('\n')
  const child = Bun.spawn(['sh', '-ec', script], {
    cwd: folder,
    env: {
      PATH: createPath(folder),
      HOME: folder,
      REAL_CURL: Bun.which('curl') ?? '',
      ATOLL_LOG_LEVEL: 'error',
      ATOLL_DURABILITY: 'normal',
      ...env,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (exitCode) throw new Error(`Exit code ${exitCode}\n${stderr.slice(-1_000)}\n${stdout.slice(-3_000)}`)
  return stdout
}
