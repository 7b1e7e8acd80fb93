// Builds the page and the binary of this platform: `npm run build`, or `npm run build -- --outfile <path>`.
import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { compileBinary } from './binary'
import { recordBytecodeOrder } from './bytecode-order'
import { runCommand } from './command'

const cwd = resolve(import.meta.dir, '..')
await runCommand([process.execPath, 'run', 'build:page'], { cwd })
console.log(await compileBinary([`--bytecode-order=${await recordBytecodeOrder()}`, ...process.argv.slice(2)]))
// The binary has its source maps inside.
for (const name of new Bun.Glob('*.js.map').scanSync(join(cwd, 'dist'))) rmSync(join(cwd, 'dist', name))
