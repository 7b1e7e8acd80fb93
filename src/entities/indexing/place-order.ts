import type { RowPlace } from './index-rows'

/** Entities by the places of their rows in an index, so that rows which are inserted one after the other lie side by side. */
export class PlaceOrder {
  #runs: { places: RowPlace[]; next: number }[] = []

  /** Adds places, which are sorted now. */
  add(places: RowPlace[]) {
    if (places.length) this.#runs.push({ places: places.sort(comparePlaces), next: 0 })
  }

  /** Returns the next entities and forgets them; none when there are no more. */
  take(count: number): number[] {
    const entities: number[] = []
    while (entities.length < count && this.#runs.length) {
      let [first] = this.#runs as [{ places: RowPlace[]; next: number }]
      for (const run of this.#runs) if (comparePlaces(run.places[run.next]!, first.places[first.next]!) < 0) first = run
      entities.push(Number(first.places[first.next++]![3]))
      if (first.next === first.places.length) this.#runs.splice(this.#runs.indexOf(first), 1)
    }
    return entities
  }
}

/** The order of the databases differs for few letters, which costs no more than a page. */
function comparePlaces(one: RowPlace, other: RowPlace): number {
  for (let at = 0; at < one.length; at++) {
    if (one[at]! < other[at]!) return -1
    if (one[at]! > other[at]!) return 1
  }
  return 0
}
