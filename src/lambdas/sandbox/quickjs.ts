import variant from '@jitl/quickjs-singlefile-mjs-release-sync'
import { newQuickJSWASMModuleFromVariant, newVariant } from 'quickjs-emscripten-core'

const PAGE_BYTES = 64 << 10
const INITIAL_BYTES = 16 << 20 // bytes that the engine begins with
const MAX_GROWTH_BYTES = 256 << 20 // bytes beyond these
const PROBE_BYTES = 1 << 20 // bytes; more than any gap between what is used
const SCAN_STEP_BYTES = 4 << 10
const USED_STACK_BYTES = 512 << 10 // bytes of its stack that may be in use
const GUARD_BYTES = 256 << 10 // bytes before them, which nothing can pass unseen: no frame is as large

// The engine's own limit counts blocks, not bytes, so what is counted is by how much its memory grows.
const wasmMemory = new WebAssembly.Memory({
  initial: INITIAL_BYTES / PAGE_BYTES,
  maximum: (INITIAL_BYTES + MAX_GROWTH_BYTES) / PAGE_BYTES,
})
const growMemory = wasmMemory.grow.bind(wasmMemory)
let maxBytes = INITIAL_BYTES

/** Where it is refused, whoever asked for memory runs out of it. */
wasmMemory.grow = (pages) => {
  if (wasmMemory.buffer.byteLength + pages * PAGE_BYTES > maxBytes) throw new RangeError('There is no more memory.')
  return growMemory(pages)
}

type Heap = { _malloc(bytes: number): number; _free(at: number): void }
type ModuleLoader = Extract<Awaited<ReturnType<typeof variant.importModuleLoader>>, (...options: never[]) => unknown>
let moduleHeap!: Heap
const importModuleLoader = async (): Promise<ModuleLoader> => {
  const load = (await variant.importModuleLoader()) as ModuleLoader
  return async (options) => {
    const module = await load(options)
    moduleHeap = module as unknown as Heap
    return module
  }
}

export const quickjs = await newQuickJSWASMModuleFromVariant(
  newVariant({ ...variant, importModuleLoader }, { wasmMemory }),
)

/** From now on the engine may take so many bytes, beyond those that it begins with. */
export function setMemoryLimit(bytes: number) {
  maxBytes = INITIAL_BYTES + Math.min(bytes, MAX_GROWTH_BYTES)
}

/** By how many bytes it has grown. They are never given back. */
export const getGrowthBytes = () => wasmMemory.buffer.byteLength - INITIAL_BYTES

/** The engine's memory. */
export const viewMemory = () => new Uint8Array(wasmMemory.buffer)

/**
 * Remembers the engine's memory as it is; returns what makes it so again, byte for byte. Most of it is stack to which nobody
 * gets, because the engine refuses to go as deep (`STACK` of the room): of that it is only seen whether it is still empty.
 */
export function snapshotMemory(): () => void {
  // What lies behind a block that fits nowhere else was never used.
  const end = moduleHeap._malloc(PROBE_BYTES)
  moduleHeap._free(end)
  const bytes = viewMemory().slice(0, end + PAGE_BYTES)
  const stack = findLongestZeroRun(bytes)
  const usedFrom = Math.max(stack.from, stack.to - USED_STACK_BYTES)
  const guardFrom = Math.max(stack.from, usedFrom - GUARD_BYTES)
  const [data, emptyGuard, used] = [
    bytes.subarray(0, stack.from),
    bytes.subarray(guardFrom, usedFrom),
    bytes.subarray(usedFrom),
  ]
  return () => {
    const view = viewMemory()
    if (Buffer.compare(view.subarray(guardFrom, usedFrom), emptyGuard)) return view.set(bytes)
    view.set(data)
    view.set(used, usedFrom)
  }
}

/** The longest part without anything in it: the stack, which grows from its end to its beginning. */
function findLongestZeroRun(bytes: Uint8Array): { from: number; to: number } {
  const zeros = new Uint8Array(SCAN_STEP_BYTES)
  let [longest, from] = [{ from: 0, to: 0 }, 0]
  for (let offset = 0; offset < bytes.length; offset += SCAN_STEP_BYTES) {
    const to = offset + SCAN_STEP_BYTES
    if (Buffer.compare(bytes.subarray(offset, to), zeros)) from = to
    else if (to - from > longest.to - longest.from) longest = { from, to }
  }
  return longest
}
