/** The best so far, in order; what is no better than the last of them costs one comparison. */
export class Closest {
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
