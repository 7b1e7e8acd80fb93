import type { Actor } from '../../accounts/actors'
import type { Model, ModelField } from '../../blueprints/model'
import { mayReadField, mayWriteField } from '../../blueprints/permissions'
import type { Limitation } from '../../blueprints/shapes'
import { Problem } from '../../core/problem'
import { fieldLabel } from '../store/index-keys'
import type { EntityDraft } from '../write/insert'
import { type TrialLimitation, toGroupKey } from '../write/limitations'
import type { Operation } from './operation'

class RolledBack extends Error {}

/** Stands for success: what was done in order to be undone. */
export function ignoreRollback(error: unknown): void {
  if (!(error instanceof RolledBack)) throw error
}

/** An import that only finds out what would be refused: each slice is done, and rolled back. */
export class ImportDryRun {
  #seenTexts = new SeenTexts()
  #drafts = new WeakMap<Operation, EntityDraft>()
  /** How many entities would have been made of each group that is limited. */
  #groups = new Map<string, number>()

  constructor(private actor: Actor | undefined) {}

  /** Undoes what was done, but for the knowledge of what would have been made. */
  rollBack(model: Model, drafts: Map<Operation, EntityDraft>): never {
    for (const [operation, draft] of drafts) {
      this.#drafts.set(operation, draft)
      const groups = (model.limitations ?? []).map((one) => toGroupName(one, toGroupKey(model, one, draft, draft.keys)))
      for (const group of new Set(groups)) this.#groups.set(group, (this.#groups.get(group) ?? 0) + 1)
    }
    throw new RolledBack()
  }

  /**
   * Without what leads to entities of the same blueprint, which may be those of earlier lines, rolled back by now; but with
   * those in what is limited. Values of fields that the caller may not read are not compared with those of others: a dry run
   * leaves no trace, so anybody could try as many as they like.
   */
  toDryRunModel(model: Model): Model {
    const fields = model.fields.map((field) => ({
      ...field,
      ...(field.target === model.key && { target: undefined }),
      ...(!mayReadField(field, this.actor) && { unique: false }),
    }))
    const limitations = model.limitations?.map(
      (limitation): TrialLimitation => ({
        ...limitation,
        countEarlier: (group) => this.#groups.get(toGroupName(limitation, group)) ?? 0,
      }),
    )
    return { ...model, fields, limitations }
  }

  /** Why a line cannot be imported along with those before it, as far as that can be told from the lines. */
  findRepeated({ fields }: Model, operation: Operation): Problem | undefined {
    const { op, name } = operation
    if (op !== 'create') return
    if (name && !this.#seenTexts.add(`identifier ${name}`))
      return new Problem(409, 'IDENTIFIER_EXISTS', 'An earlier line already has this identifier.')
    const keys = this.#drafts.get(operation)?.keys ?? {}
    for (const field of fields) {
      const value = field.unique ? keys[fieldLabel(field)] : undefined
      if (value !== undefined && !this.#seenTexts.add(`${field.key} ${value}`))
        return duplicateProblem(field, this.actor)
    }
  }
}

const toGroupName = ({ scope, properties }: Limitation, group: string) => `${scope} ${properties} ${group}`

function duplicateProblem(field: ModelField, actor: Actor | undefined) {
  const isVisible = mayReadField(field, actor) || mayWriteField(field, actor)
  const what = isVisible ? `this ${field.key}` : 'a value that must be unique'
  return new Problem(409, 'UNIQUE_VIOLATION', `An earlier line already has ${what}.`)
}

/** Which of a great many texts were there before, in eight bytes each: of a million, two are mistaken once in 10^7 times. */
class SeenTexts {
  #slots = new BigUint64Array(1 << 10)
  #size = 0

  /** Whether it was new. */
  add(text: string): boolean {
    const hash = (Bun.hash(text) as bigint) || 1n
    if (!insertHash(this.#slots, hash)) return false
    if (++this.#size * 2 > this.#slots.length) {
      const larger = new BigUint64Array(this.#slots.length * 2)
      for (const hash64 of this.#slots) if (hash64) insertHash(larger, hash64)
      this.#slots = larger
    }
    return true
  }
}

function insertHash(slots: BigUint64Array, hash: bigint): boolean {
  for (let at = Number(hash & BigInt(slots.length - 1)); ; at = (at + 1) & (slots.length - 1)) {
    if (slots[at] === hash) return false
    if (slots[at]) continue
    slots[at] = hash
    return true
  }
}
