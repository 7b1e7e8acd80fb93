import type { Actor } from '../../accounts/actors'
import type { Model, ModelField } from '../../blueprints/model'
import { mayRead, mayWrite } from '../../blueprints/rules'
import type { Limitation } from '../../blueprints/shapes'
import { Problem } from '../../core/problem'
import type { Draft } from '../adding'
import { labelOf } from '../keys'
import { groupOf, type Tried } from '../limits'
import type { Operation } from './operation'

class Undone extends Error {}

/** Stands for success: what was done in order to be undone. */
export function rehearsed(error: unknown): void {
  if (!(error instanceof Undone)) throw error
}

/** An import that only finds out what would be refused: each slice is done, and rolled back. */
export class Rehearsal {
  #seen = new Seen()
  #made = new WeakMap<Operation, Draft>()
  /** How many entities would have been made of each group that is limited. */
  #groups = new Map<string, number>()

  constructor(private actor: Actor | undefined) {}

  /** Undoes what was done, but for the knowledge of what would have been made. */
  end(model: Model, made: Map<Operation, Draft>): never {
    for (const [operation, draft] of made) {
      this.#made.set(operation, draft)
      const groups = (model.limitations ?? []).map((one) => named(one, groupOf(model, one, draft, draft.keys)))
      for (const group of new Set(groups)) this.#groups.set(group, (this.#groups.get(group) ?? 0) + 1)
    }
    throw new Undone()
  }

  /**
   * Without what leads to entities of the same blueprint, which may be those of earlier lines, rolled back by now; but with
   * those in what is limited. Values of fields that the caller may not read are not compared with those of others: a dry run
   * leaves no trace, so anybody could try as many as they like.
   */
  model(model: Model): Model {
    const fields = model.fields.map((field) => ({
      ...field,
      ...(field.target === model.key && { target: undefined }),
      ...(!mayRead(field, this.actor) && { unique: false }),
    }))
    const limitations = model.limitations?.map(
      (limitation): Tried => ({ ...limitation, earlier: (group) => this.#groups.get(named(limitation, group)) ?? 0 }),
    )
    return { ...model, fields, limitations }
  }

  /** Why a line cannot be imported along with those before it, as far as that can be told from the lines. */
  repeated({ fields }: Model, operation: Operation): Problem | undefined {
    const { op, name } = operation
    if (op !== 'create') return
    if (name && !this.#seen.add(`identifier ${name}`))
      return new Problem(409, 'IDENTIFIER_EXISTS', 'An earlier line has this identifier already.')
    const keys = this.#made.get(operation)?.keys ?? {}
    for (const field of fields) {
      const value = field.unique ? keys[labelOf(field)] : undefined
      if (value !== undefined && !this.#seen.add(`${field.key} ${value}`)) return duplicate(field, this.actor)
    }
  }
}

const named = ({ scope, properties }: Limitation, group: string) => `${scope} ${properties} ${group}`

function duplicate(field: ModelField, actor: Actor | undefined) {
  const known = mayRead(field, actor) || mayWrite(field, actor)
  const what = known ? `this ${field.key}` : 'a value that must be unique'
  return new Problem(409, 'UNIQUE_VIOLATION', `An earlier line has ${what} already.`)
}

/** Which of a great many texts were there before, in eight bytes each: of a million, two are mistaken once in 10^7 times. */
class Seen {
  #slots = new BigUint64Array(1 << 10)
  #size = 0

  /** Whether it was new. */
  add(text: string): boolean {
    const hash = (Bun.hash(text) as bigint) || 1n
    if (!put(this.#slots, hash)) return false
    if (++this.#size * 2 > this.#slots.length) {
      const larger = new BigUint64Array(this.#slots.length * 2)
      for (const one of this.#slots) if (one) put(larger, one)
      this.#slots = larger
    }
    return true
  }
}

function put(slots: BigUint64Array, hash: bigint): boolean {
  for (let at = Number(hash & BigInt(slots.length - 1)); ; at = (at + 1) & (slots.length - 1)) {
    if (slots[at] === hash) return false
    if (slots[at]) continue
    slots[at] = hash
    return true
  }
}
