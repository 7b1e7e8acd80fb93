/** The numbers with the highest scores, in order. A score that is too low costs one comparison. */
export class TopK {
  #numbers: number[] = []
  #scores: number[] = []
  #minScore = Number.NEGATIVE_INFINITY

  constructor(private limit: number) {}

  add(number: number, score: number) {
    if (score <= this.#minScore) return
    let position = this.#scores.length
    while (position > 0 && this.#scores[position - 1]! < score) position--
    this.#scores.splice(position, 0, score)
    this.#numbers.splice(position, 0, number)
    if (this.#scores.length > this.limit) this.#numbers.length = this.#scores.length = this.limit
    if (this.#scores.length === this.limit) this.#minScore = this.#scores.at(-1)!
  }

  numbers = () => this.#numbers
}
