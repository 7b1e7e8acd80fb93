import { compareValues } from '../query/value-order'

export type Value = string | number

/** Distinct values in ascending order, by their index. */
export type SortedValues = { readonly length: number; at(index: number): Value | undefined }

const RUN_LENGTH = 16_384 // values that are sorted in one step, which is faster than merging
const SURROGATES = /[\ud800-\udfff]/

/** Sorts distinct values, all texts or all numbers, and yields after every few ms. */
export function* sortValues(values: Value[]): Generator<void, Value[]> {
  const isPlain = typeof values[0] === 'string' && !SURROGATES.test(values.join(''))
  yield
  // Only with surrogates does the order of code points differ from that of JavaScript, which is faster.
  const sort = (run: Value[]) => (isPlain ? run.sort() : run.sort(compareValues))
  const isBefore = isPlain
    ? (one: Value, other: Value) => one < other
    : (one: Value, other: Value) => compareValues(one, other) < 0
  let runs: Value[][] = []
  for (let from = 0; from < values.length; from += RUN_LENGTH) {
    runs.push(sort(values.slice(from, from + RUN_LENGTH)))
    yield
  }
  while (runs.length > 1) {
    const merged: Value[][] = []
    for (let at = 0; at < runs.length; at += 2) {
      const [one, other] = [runs[at]!, runs[at + 1]]
      merged.push(other ? yield* merge(one, other, isBefore) : one)
    }
    runs = merged
  }
  return runs[0] ?? []
}

/** Returns sorted values in the form that takes the least memory. */
export const packValues = (sorted: Value[]): SortedValues =>
  typeof sorted[0] === 'string' ? new SortedTexts(sorted as string[]) : sorted

function* merge(ones: Value[], others: Value[], isBefore: (one: Value, other: Value) => boolean) {
  const merged: Value[] = []
  for (let [one, other] = [0, 0]; one < ones.length || other < others.length; ) {
    const isOne = other >= others.length || (one < ones.length && isBefore(ones[one]!, others[other]!))
    merged.push(isOne ? ones[one++]! : others[other++]!)
    if (merged.length % RUN_LENGTH === 0) yield
  }
  return merged
}

/** Texts in one string, which take less memory than a string each, and less work of the garbage collector. */
class SortedTexts implements SortedValues {
  readonly length: number
  #joined: string
  #ends: Uint32Array

  constructor(texts: string[]) {
    this.length = texts.length
    this.#joined = texts.join('')
    this.#ends = new Uint32Array(texts.length)
    for (let at = 0, end = 0; at < texts.length; at++) {
      end += texts[at]!.length
      this.#ends[at] = end
    }
  }

  at(index: number) {
    return this.#joined.slice(index && this.#ends[index - 1], this.#ends[index])
  }
}
