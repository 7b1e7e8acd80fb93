import variant from '@jitl/quickjs-singlefile-mjs-release-sync'
import { newQuickJSWASMModuleFromVariant, newVariant } from 'quickjs-emscripten-core'

const PAGE = 64 << 10
const FIRST = 16 << 20 // bytes that the engine begins with
const MOST = 256 << 20 // bytes beyond these
const PROBE = 1 << 20 // bytes; more than any gap between what is used
const STEP = 4 << 10
const REACHED = 512 << 10 // bytes of its stack that may be in use
const WATCHED = 256 << 10 // bytes before them, which nothing can pass unseen: no frame is as large

// The engine's own limit counts blocks, not bytes, so what is counted is by how much its memory grows.
const wasmMemory = new WebAssembly.Memory({ initial: FIRST / PAGE, maximum: (FIRST + MOST) / PAGE })
const grow = wasmMemory.grow.bind(wasmMemory)
let ceiling = FIRST

/** Where it is refused, whoever asked for memory runs out of it. */
wasmMemory.grow = (pages) => {
  if (wasmMemory.buffer.byteLength + pages * PAGE > ceiling) throw new RangeError('There is no more memory.')
  return grow(pages)
}

type Heap = { _malloc(bytes: number): number; _free(at: number): void }
type Load = Extract<Awaited<ReturnType<typeof variant.importModuleLoader>>, (...options: never[]) => unknown>
let heap!: Heap
const importModuleLoader = async (): Promise<Load> => {
  const load = (await variant.importModuleLoader()) as Load
  return async (options) => {
    const module = await load(options)
    heap = module as unknown as Heap
    return module
  }
}

export const engine = await newQuickJSWASMModuleFromVariant(
  newVariant({ ...variant, importModuleLoader }, { wasmMemory }),
)

/** From now on the engine may take so many bytes, beyond those that it begins with. */
export function allow(bytes: number) {
  ceiling = FIRST + Math.min(bytes, MOST)
}

/** By how many bytes it has grown. They are never given back. */
export const grown = () => wasmMemory.buffer.byteLength - FIRST

/** The engine's memory. */
export const memory = () => new Uint8Array(wasmMemory.buffer)

/**
 * Remembers the engine's memory as it is; returns what makes it so again, byte for byte. Most of it is stack to which nobody
 * gets, because the engine refuses to go as deep (`STACK` of the room): of that it is only seen whether it is still empty.
 */
export function remembered(): () => void {
  // What lies behind a block that fits nowhere else was never used.
  const end = heap._malloc(PROBE)
  heap._free(end)
  const bytes = memory().slice(0, end + PAGE)
  const stack = emptiest(bytes)
  const reached = Math.max(stack.from, stack.to - REACHED)
  const watched = Math.max(stack.from, reached - WATCHED)
  const [data, nothing, used] = [
    bytes.subarray(0, stack.from),
    bytes.subarray(watched, reached),
    bytes.subarray(reached),
  ]
  return () => {
    const all = memory()
    if (Buffer.compare(all.subarray(watched, reached), nothing)) return all.set(bytes)
    all.set(data)
    all.set(used, reached)
  }
}

/** The longest part without anything in it: the stack, which grows from its end to its beginning. */
function emptiest(bytes: Uint8Array): { from: number; to: number } {
  const nothing = new Uint8Array(STEP)
  let [longest, from] = [{ from: 0, to: 0 }, 0]
  for (let at = 0; at < bytes.length; at += STEP) {
    const to = at + STEP
    if (Buffer.compare(bytes.subarray(at, to), nothing)) from = to
    else if (to - from > longest.to - longest.from) longest = { from, to }
  }
  return longest
}
