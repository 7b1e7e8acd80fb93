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

/** Four sums at a time, which the processor adds up beside each other. */
function product(vectors: Float32Array, from: number, wanted: Float32Array): number {
  const { length } = wanted
  let [a, b, c, d] = [0, 0, 0, 0]
  let n = 0
  for (; n + 3 < length; n += 4) {
    a += vectors[from + n]! * wanted[n]!
    b += vectors[from + n + 1]! * wanted[n + 1]!
    c += vectors[from + n + 2]! * wanted[n + 2]!
    d += vectors[from + n + 3]! * wanted[n + 3]!
  }
  for (; n < length; n++) a += vectors[from + n]! * wanted[n]!
  return a + b + c + d
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
