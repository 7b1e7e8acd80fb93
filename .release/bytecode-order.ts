import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { compileBinary } from './binary'
import { runCommand } from './command'

const ROOT = resolve(import.meta.dir, '..')
const FIRST_START = join(import.meta.dir, 'first-start.ts')
const UNORDERED = join(ROOT, 'dist/binaries/unordered/atoll')
const ORDER = join(ROOT, 'dist/binaries/unordered/bytecode-order.txt')

/**
 * Builds a binary of this platform, starts it, and returns the path of a file that says which bytecode the start used.
 * With it, that bytecode lies together in another build, so that a start reads less of the binary into memory.
 */
export async function recordBytecodeOrder(): Promise<string> {
  mkdirSync(join(UNORDERED, '..'), { recursive: true })
  await compileBinary(['--outfile', UNORDERED])
  const folder = mkdtempSync(join(tmpdir(), 'atoll-first-start-'))
  const env = { ...process.env, BUN_BYTECODE_ORDER_OUT: ORDER }
  await runCommand([process.execPath, FIRST_START, folder, UNORDERED], { env })
  rmSync(folder, { recursive: true })
  // What a start uses is always the same, but not its sequence. Sorted, the same source gives the same binary.
  const [version, ...lines] = readFileSync(ORDER, 'utf8').trimEnd().split('\n')
  writeFileSync(ORDER, `${[version, ...lines.sort()].join('\n')}\n`)
  return ORDER
}
