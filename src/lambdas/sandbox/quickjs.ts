import variant from '@jitl/quickjs-singlefile-mjs-release-sync'
import { newQuickJSWASMModuleFromVariant, newVariant } from 'quickjs-emscripten-core'

const PAGE_BYTES = 64 << 10
const INITIAL_BYTES = 16 << 20 // the initial memory of the engine
const MAX_GROWTH_BYTES = 256 << 20 // beyond the initial memory
const PROBE_BYTES = 1 << 20 // more than any gap between used blocks
const SCAN_STEP_BYTES = 4 << 10
const USED_STACK_BYTES = 512 << 10 // of its stack that may be in use
const GUARD_BYTES = 256 << 10 // before the used stack; larger than any frame

// The engine's own limit counts blocks, not bytes, so the growth of its memory is limited instead.
const wasmMemory = new WebAssembly.Memory({
  initial: INITIAL_BYTES / PAGE_BYTES,
  maximum: (INITIAL_BYTES + MAX_GROWTH_BYTES) / PAGE_BYTES,
})
const growMemory = wasmMemory.grow.bind(wasmMemory)
let maxBytes = INITIAL_BYTES

/** When growth is refused, the engine's allocation fails as out of memory. */
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

/** Sets the bytes that the engine may use beyond its initial memory. */
export function setMemoryLimit(bytes: number) {
  maxBytes = INITIAL_BYTES + Math.min(bytes, MAX_GROWTH_BYTES)
}

/** Returns the bytes by which the engine has grown. They are never freed. */
export const getGrowthBytes = () => wasmMemory.buffer.byteLength - INITIAL_BYTES

/** Returns the engine's memory. */
export const viewMemory = () => new Uint8Array(wasmMemory.buffer)

/**
 * Records the engine's memory; returns a function that restores it byte for byte. Most of it is stack that is never
 * reached, because the engine limits its depth (`MAX_STACK_BYTES` in runtime.ts): of that part only a guard is
 * compared. When the guard is no longer empty, the whole memory is restored.
 */
export function snapshotMemory(): () => void {
  // A block that fits into no gap is allocated after everything in use.
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

/** Returns the longest range of zeros: the stack, which grows from its end to its beginning. */
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
