import { Database } from 'bun:sqlite'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { HOUR_MS } from '../../src/core/clock'

const root = resolve(import.meta.dir, '../..')
const folder = join(root, 'dist/test')

let binary: string | undefined

/**
 * Returns the path of the compiled binary of these sources, which starts four times as fast as they do. The first
 * process that needs it builds it. TEST_BINARY names another one, such as that of a release.
 */
export const binaryPath = (): string =>
  (binary ??= findGivenBinary() ?? buildOnce(join(folder, `atoll-${hashSources()}`)))

const findGivenBinary = () => process.env.TEST_BINARY && resolve(process.env.TEST_BINARY)

/** What the binary is built from. */
const SOURCES = [
  'src/**/*',
  'client/src/*',
  'migrations/**/*',
  '.release/binary.ts',
  'package.json',
  'package-lock.json',
]

/** Returns a name for the files that are built, by their sizes and the times of their last changes. */
function hashSources() {
  const files = SOURCES.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync(root)])
  const states = files.sort().map((file) => {
    const { size, mtimeMs } = statSync(join(root, file))
    return [file, size, mtimeMs]
  })
  return Bun.hash(JSON.stringify(states)).toString(36)
}

function buildOnce(path: string) {
  mkdirSync(folder, { recursive: true })
  // Released by the system when this process ends, however it does.
  const lock = new Database(join(folder, 'lock.db'))
  lock.run('pragma busy_timeout = 300000') // on a busy machine, a build takes more than a minute
  lock.run('begin exclusive')
  try {
    if (!existsSync(path)) build(path)
    return path
  } finally {
    lock.close()
  }
}

function build(path: string) {
  removeUnused()
  const draft = `${path}.draft`
  // Without the order of the bytecode, which takes a second build.
  runBun('run', 'build:page')
  runBun('.release/binary.ts', '--outfile', draft)
  renameSync(draft, path)
}

/** Compiles a program that a test starts many times, and returns its path: importing the server takes half a second. */
export function compileProgram(source: string, folder: string): string {
  const program = join(folder, basename(source, '.ts'))
  runBun('build', '--compile', '--bytecode', '--format=esm', '--external=better-sqlite3', source, '--outfile', program)
  return program
}

function runBun(...args: string[]) {
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, ...args], { cwd: root, stderr: 'pipe' })
  if (exitCode) throw new Error(`The build failed.\n${stderr}`)
}

/** Another run may still use a binary that was built a moment ago. */
function removeUnused() {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    if (name.startsWith('atoll-') && statSync(path).mtimeMs < Date.now() - HOUR_MS) rmSync(path)
  }
}
