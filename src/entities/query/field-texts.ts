import { isTruncated } from '../../blueprints/fields/index-key-codec'
import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { type ChangePosition, isReachable, readChangedEntities, readChangePosition } from '../changes/tracked-changes'
import { and, fragment, oneOf, toChunks } from '../store/sql-fragments'
import { foldText, type LikePattern } from './like-pattern'
import { getCached, readUntilChange, setCached } from './read-cache'
import { type FieldTarget, valueSql } from './sql-conditions'

const MAX_CHARACTERS = 4 << 20 // of the texts of one field
const SEPARATOR = '\0' // no text contains it

/** The distinct texts of a field, joined to one string, which is searched faster than text by text. */
export class FieldTexts {
  #texts: string[] = []
  #folded = ''
  /** Where each text begins in `#folded`. */
  #starts: number[] = []
  /** Texts of which the index has only the beginning. */
  #truncated: string[] = []

  get characters() {
    return this.#folded.length
  }

  add(texts: string[]) {
    for (const text of texts) {
      if (isTruncated(text)) this.#truncated.push(text)
      else {
        this.#starts.push(this.#folded.length)
        this.#texts.push(text)
        this.#folded += foldText(text) + SEPARATOR
      }
    }
  }

  /** Yields the texts that may match a pattern. */
  *findCandidates(pattern: LikePattern): Generator<string> {
    const { literal } = pattern
    if (!literal) yield* this.#texts
    else
      for (let at = this.#folded.indexOf(literal); at >= 0; ) {
        const index = this.#indexAt(at)
        yield this.#texts[index]!
        const next = this.#starts[index + 1]
        if (next === undefined) break
        at = this.#folded.indexOf(literal, next)
      }
    yield* this.#truncated
  }

  /** Returns the index of the text at an offset of the string. */
  #indexAt(offset: number): number {
    let [low, high] = [0, this.#starts.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#starts[middle]! <= offset) low = middle
      else high = middle - 1
    }
    return low
  }
}

/** The texts of a field in the index, with those that were written since they were read. */
class TrackedTexts {
  /** Only these grow, because the string of all texts would be copied at each change. */
  #added = new FieldTexts()
  #seen = new Set<string>()

  constructor(
    private all: FieldTexts,
    /** Where the blueprint's changes were when the texts were read, and up to where they are included. */
    readonly since: ChangePosition,
    public upto = since.number,
  ) {}

  get characters() {
    return this.all.characters + this.#added.characters
  }

  add(texts: string[]) {
    this.#added.add(texts.filter((text) => !this.#seen.has(text)))
    for (const text of texts) this.#seen.add(text)
  }

  *findCandidates(pattern: LikePattern): Generator<string> {
    for (const text of this.all.findCandidates(pattern)) if (!this.#seen.has(text)) yield text
    yield* this.#added.findCandidates(pattern)
  }
}

/**
 * Returns the distinct texts of a field, which `read` yields, maybe with some that no entity has any more. They are cached
 * where the blueprint's changes are tracked, and then only the entities that changed are read again; otherwise only in
 * reader threads, until the tenant is written to. Returns undefined where they are not cached, or too many.
 */
export async function getFieldTexts(
  db: Db,
  model: Model,
  target: FieldTarget,
  read: () => AsyncIterable<string[]>,
): Promise<Pick<FieldTexts, 'findCandidates'> | undefined> {
  const load = async () => {
    const texts = new FieldTexts()
    for await (const some of read()) {
      texts.add(some)
      if (texts.characters > MAX_CHARACTERS) return
    }
    return texts
  }
  if (db.isUncached) return
  const name = `texts ${target.label}`
  const position = await readChangePosition(db, model.key)
  if (!position) {
    if (!(db.origin ?? db).commitVersion) return
    return readUntilChange(db, model, `${name} until commit`, load, (texts) => texts?.characters ?? 0)
  }
  const tooMany = getCached<ChangePosition>(db, model, `${name} too many`)
  if (tooMany && isReachable(tooMany, position)) return
  const cached = getCached<TrackedTexts>(db, model, name)
  if (cached && isReachable(cached.since, position)) {
    await addChanged(db, model, target, cached, position.number)
    if (cached.characters <= MAX_CHARACTERS) return cached
  }
  const texts = await load()
  if (!texts) return void setCached(db, model, `${name} too many`, position)
  const tracked = new TrackedTexts(texts, position)
  setCached(db, model, name, tracked, RESERVED_FACTOR * tracked.characters)
  return tracked
}

const RESERVED_FACTOR = 1.5 // added texts are not counted one by one

/** Adds the texts of the entities that changed since the last time. */
async function addChanged(db: Db, model: Model, target: FieldTarget, texts: TrackedTexts, upto: number) {
  const value = valueSql(target)
  for await (const entities of readChangedEntities(db, model.key, texts.upto, upto)) {
    for (const chunk of toChunks([...new Set(entities)])) {
      const { sql, params } = and([fragment('e.blueprint = ?', model.code), oneOf('e.seq', chunk)])
      const rows = await db.query(`select ${value.sql} from entities e where ${sql}`, [...value.params, ...params])
      const keys = rows.flatMap(([key]) => (key === null ? [] : [key as string]))
      texts.add(target.single ? keys : keys.flatMap((list) => JSON.parse(list) as string[]))
    }
    await db.yieldToOthers()
  }
  // Another reader may have read further meanwhile.
  texts.upto = Math.max(texts.upto, upto)
}
