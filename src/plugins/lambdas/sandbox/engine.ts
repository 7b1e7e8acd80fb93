import variant from '@jitl/quickjs-singlefile-mjs-release-sync'
import { newQuickJSWASMModuleFromVariant, newVariant } from 'quickjs-emscripten-core'

const PAGE = 64 << 10
const FIRST = 16 << 20 // bytes that the engine begins with
const MOST = 256 << 20 // bytes beyond these

// The engine's own limit counts blocks, not bytes, so what is counted is by how much its memory grows.
const wasmMemory = new WebAssembly.Memory({ initial: FIRST / PAGE, maximum: (FIRST + MOST) / PAGE })
const grow = wasmMemory.grow.bind(wasmMemory)
let ceiling = FIRST

/** Where it is refused, whoever asked for memory runs out of it. */
wasmMemory.grow = (pages) => {
  if (wasmMemory.buffer.byteLength + pages * PAGE > ceiling) throw new RangeError('There is no more memory.')
  return grow(pages)
}

export const engine = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmMemory }))

/** From now on the engine may take so many bytes, beyond those that it begins with. */
export function allow(bytes: number) {
  ceiling = FIRST + Math.min(bytes, MOST)
}

/** By how many bytes it has grown. They are never given back. */
export const grown = () => wasmMemory.buffer.byteLength - FIRST
