// `bun .release/binary.ts [options of bun build]`: compiles the server with the built admin page.
import { resolve } from 'node:path'
import { runCommand } from './command'

const ROOT = resolve(import.meta.dir, '..')

/** The modules that the binary starts with: the server and its threads. */
export const SERVER_ENTRIES = [
  'src/main.ts',
  'src/storage/engines/sqlite/checkpoint-worker.ts',
  'src/storage/engines/sqlite/file-check-worker.ts',
  'src/storage/engines/sqlite/migration-worker.ts',
  'src/content/sanitizer-worker.ts',
  'src/reader-thread.ts',
]

const OPTIONS = [
  ...['--compile', '--splitting', '--no-compile-autoload-bunfig', '--root', 'src'],
  ...['--bytecode', '--compile-jit-policy=1000', '--format=esm'],
  ...['--minify-whitespace', '--minify-syntax', '--sourcemap', '--external', 'better-sqlite3'],
  ...['--define', "__dirname='/'", '--define', "process.env.NODE_ENV='production'"],
]

/** Compiles the binary to `dist/atoll`, or where `--outfile` says, and returns what `bun build` printed. */
export function compileBinary(options: string[]): Promise<string> {
  const page = [...new Bun.Glob('dist/admin/*.br').scanSync(ROOT)].sort()
  const files = [...SERVER_ENTRIES, ...page]
  return runCommand([process.execPath, 'build', ...OPTIONS, ...files, '--outfile', 'dist/atoll', ...options], {
    cwd: ROOT,
  })
}

if (import.meta.main) console.log(await compileBinary(process.argv.slice(2)))
