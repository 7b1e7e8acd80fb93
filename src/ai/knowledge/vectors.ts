import type { Db } from '../../storage/port'
import { type Slab, slabsOf } from './slabs'
import type { StoreRow } from './stores'

const TURN = 4 // ms, after which others get theirs
const STEP = 128 // vectors between two looks at the time

/** Numbers of the chunks whose vectors are closest to one, the closest first: each is compared (cosine). */
export async function nearest(db: Db, stores: StoreRow[], wanted: Float32Array, most: number): Promise<number[]> {
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

/** The best so far, in order; what is no better than the last of them costs one comparison. */
class Closest {
  #numbers: number[] = []
  #scores: number[] = []
  #least = Number.NEGATIVE_INFINITY

  constructor(private most: number) {}

  add(number: number, score: number) {
    if (score <= this.#least) return
    let at = this.#scores.length
    while (at > 0 && this.#scores[at - 1]! < score) at--
    this.#scores.splice(at, 0, score)
    this.#numbers.splice(at, 0, number)
    if (this.#scores.length > this.most) this.#numbers.length = this.#scores.length = this.most
    if (this.#scores.length === this.most) this.#least = this.#scores.at(-1)!
  }

  numbers = () => this.#numbers
}
