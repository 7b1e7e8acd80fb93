import { Closest } from './closest'
import type { Search } from './nearest'
import { type Slab, slabsOf } from './slabs'

const TURN = 4 // ms, after which others get theirs
const STEP = 128 // vectors between two looks at the time

/** Compares each vector here, those of stores that were asked lately from memory. */
export const javascript: Search = async (db, stores, wanted, most) => {
  const found = new Closest(most)
  const turn = { began: performance.now() }
  for (const store of stores) for await (const slab of slabsOf(db, store)) await compare(slab, wanted, found, turn)
  return found.numbers()
}

async function compare({ numbers, vectors }: Slab, wanted: Float32Array, found: Closest, turn: { began: number }) {
  const { length } = wanted
  for (let n = 0; n < numbers.length; n += STEP) {
    const to = Math.min(n + STEP, numbers.length)
    for (let at = n; at < to; at++) found.add(numbers[at]!, product(vectors, at * length, wanted))
    if (performance.now() - turn.began < TURN) continue
    await new Promise(setImmediate)
    turn.began = performance.now()
  }
}

/** Eight sums, which the processor adds up beside each other; as plain variables, for it is what takes the time. */
function product(vectors: Float32Array, from: number, wanted: Float32Array): number {
  const { length } = wanted
  let a = 0
  let b = 0
  let c = 0
  let d = 0
  let e = 0
  let f = 0
  let g = 0
  let h = 0
  let n = 0
  for (; n + 7 < length; n += 8) {
    const at = from + n
    a += vectors[at]! * wanted[n]!
    b += vectors[at + 1]! * wanted[n + 1]!
    c += vectors[at + 2]! * wanted[n + 2]!
    d += vectors[at + 3]! * wanted[n + 3]!
    e += vectors[at + 4]! * wanted[n + 4]!
    f += vectors[at + 5]! * wanted[n + 5]!
    g += vectors[at + 6]! * wanted[n + 6]!
    h += vectors[at + 7]! * wanted[n + 7]!
  }
  for (; n < length; n++) a += vectors[from + n]! * wanted[n]!
  return a + b + c + d + e + f + g + h
}
