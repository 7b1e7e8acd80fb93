import type { Db } from '../../../storage/port'
import type { NearestSearch } from './nearest-search'
import { TopK } from './top-k'
import { readVectorBlocks, type VectorBlock } from './vector-cache'

const MAX_BLOCKING_MS = 2 // ms, after which other work gets a turn
const VECTORS_BETWEEN_CHECKS = 128 // vectors between two checks of the time

/** Compares each vector in this process. Vectors of recently searched stores are cached in memory. */
export const searchInJavascript: NearestSearch = async (db, stores, queryVector, limit) => {
  const topK = new TopK(limit)
  const timeSlice = { began: performance.now() }
  for (const store of stores)
    for await (const block of readVectorBlocks(db, store)) await scoreBlock(db, block, queryVector, topK, timeSlice)
  return topK.numbers()
}

async function scoreBlock(
  db: Db,
  { numbers, vectors }: VectorBlock,
  queryVector: Float32Array,
  topK: TopK,
  timeSlice: { began: number },
) {
  const { length } = queryVector
  for (let n = 0; n < numbers.length; n += VECTORS_BETWEEN_CHECKS) {
    const to = Math.min(n + VECTORS_BETWEEN_CHECKS, numbers.length)
    for (let at = n; at < to; at++) topK.add(numbers[at]!, dotProduct(vectors, at * length, queryVector))
    if (performance.now() - timeSlice.began < MAX_BLOCKING_MS) continue
    await db.yieldToOthers()
    timeSlice.began = performance.now()
  }
}

/** Uses eight sums, which the processor adds up in parallel, in plain variables: this is the hot loop. */
function dotProduct(vectors: Float32Array, from: number, queryVector: Float32Array): number {
  const { length } = queryVector
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
    a += vectors[at]! * queryVector[n]!
    b += vectors[at + 1]! * queryVector[n + 1]!
    c += vectors[at + 2]! * queryVector[n + 2]!
    d += vectors[at + 3]! * queryVector[n + 3]!
    e += vectors[at + 4]! * queryVector[n + 4]!
    f += vectors[at + 5]! * queryVector[n + 5]!
    g += vectors[at + 6]! * queryVector[n + 6]!
    h += vectors[at + 7]! * queryVector[n + 7]!
  }
  for (; n < length; n++) a += vectors[from + n]! * queryVector[n]!
  return a + b + c + d + e + f + g + h
}
