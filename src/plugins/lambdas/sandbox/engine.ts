import variant from '@jitl/quickjs-singlefile-mjs-release-sync'
import { newQuickJSWASMModuleFromVariant, newVariant } from 'quickjs-emscripten-core'

const PAGE = 64 << 10
const FIRST = 16 << 20 // bytes that the engine begins with
const MOST = 256 << 20 // bytes beyond these
const PROBE = 1 << 20 // bytes; more than any gap between what is used

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

/** Remembers the engine's memory as it is; returns what makes it so again, in a fraction of a millisecond. */
export function remembered(): () => void {
  // What lies behind a block that fits nowhere else was never used.
  const end = heap._malloc(PROBE)
  heap._free(end)
  const bytes = new Uint8Array(wasmMemory.buffer).slice(0, end + PAGE)
  return () => new Uint8Array(wasmMemory.buffer).set(bytes)
}
