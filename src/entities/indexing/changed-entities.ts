import type { Db, Tx } from '../../storage/port'
import { type ChangePosition, isReachable, readChangedEntities, readChangePosition } from '../changes/tracked-changes'

/** The entities of a blueprint that have changed since a position. */
export class ChangedEntities {
  #numbers = new Set<number>()
  #upto: ChangePosition

  private constructor(
    private blueprint: string,
    private since: ChangePosition,
  ) {
    this.#upto = since
  }

  /** Starts now. Returns undefined when changes are not tracked. */
  static async sinceNow(db: Db, blueprint: string): Promise<ChangedEntities | undefined> {
    const position = await readChangePosition(db, blueprint)
    return position && new ChangedEntities(blueprint, position)
  }

  /** Returns their numbers as of a transaction, or undefined when some records are gone. */
  async read(tx: Tx): Promise<ReadonlySet<number> | undefined> {
    const position = await readChangePosition(tx, this.blueprint)
    if (!position || !isReachable(this.since, position)) return
    for await (const numbers of readChangedEntities(tx, this.blueprint, this.#upto.number, position.number))
      for (const number of numbers) this.#numbers.add(number)
    this.#upto = position
    return this.#numbers
  }
}
