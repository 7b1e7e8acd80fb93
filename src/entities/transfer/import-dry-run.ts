import type { Actor } from '../../accounts/actors'
import type { Model, ModelField } from '../../blueprints/model'
import { mayReadField, mayWriteField, type RowScope } from '../../blueprints/permissions'
import type { Limitation } from '../../blueprints/shapes'
import { Problem } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { fieldLabel } from '../store/index-keys'
import { findReadable, MissingReference } from '../write/constraints'
import type { EntityDraft } from '../write/insert'
import { type TrialLimitation, toGroupKey } from '../write/limitations'
import { type PlannedLine, splitByReferences } from './held-lines'
import { listOwnReferences } from './later-references'
import type { Operation } from './operation'

class RolledBack extends Error {}

/** Ignores the rollback that ends a successful transaction of a dry run. */
export function ignoreRollback(error: unknown): void {
  if (!(error instanceof RolledBack)) throw error
}

/** A dry run of an import, which only finds out what would be rejected: each batch is written and rolled back. */
export class ImportDryRun {
  #seenTexts = new SeenTexts()
  #drafts = new WeakMap<Operation, EntityDraft>()
  /** The number of entities that would have been created in each limited group. */
  #groups = new Map<string, number>()
  /** Lines that would be written and refer to entities of the blueprint, with their references alone. */
  #referring: PlannedLine[] = []
  /** The names that all other lines would create. */
  #names = new Set<string>()

  constructor(private actor: Actor | undefined) {}

  /** Rolls back the transaction, but remembers what it would have created. */
  rollBack(model: Model, drafts: Map<Operation, EntityDraft>): never {
    for (const [operation, draft] of drafts) {
      this.#drafts.set(operation, draft)
      const groups = (model.limitations ?? []).map((one) => toGroupName(one, toGroupKey(model, one, draft, draft.keys)))
      for (const group of new Set(groups)) this.#groups.set(group, (this.#groups.get(group) ?? 0) + 1)
    }
    throw new RolledBack()
  }

  /**
   * Returns the model for the dry run. Relations to the same blueprint are left to `findMissing`, because they may refer
   * to other lines, which have been rolled back; limitations count these lines. Unique fields that the caller may not
   * read are not compared: a dry run leaves no trace, so callers could probe any number of values.
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

  /** Notes a line that would be written. */
  accept(model: Model, { line, operation }: PlannedLine) {
    const references = listOwnReferences(model, operation)
    if (!references.length) {
      if (operation.name) this.#names.add(operation.name)
      return
    }
    const data = Object.fromEntries(
      [...Map.groupBy(references, ({ key }) => key)].map(([key, group]) => [key, group.map((one) => one.identifier)]),
    )
    this.#referring.push({ line, operation: { ...operation, data } })
  }

  /** Returns the accepted lines that refer to entities of the blueprint that neither exist nor would be written. */
  async findMissing(tx: Pick<Tx, 'query'>, model: Model, rowScope: RowScope | undefined) {
    const references = this.#referring.flatMap(({ operation }) => listOwnReferences(model, operation))
    const names = references.map(({ identifier }) => identifier).filter((name) => !this.#names.has(name))
    const stored = await findReadable(tx, model.key, rowScope, names)
    const { missing } = splitByReferences(model, this.#referring, (name) => this.#names.has(name) || stored.has(name))
    return [...missing].map(([{ line, operation }, { name }]) => {
      const { key } = listOwnReferences(model, operation).find(({ identifier }) => identifier === name)!
      return { line, error: new MissingReference(key, model.key, name) }
    })
  }

  /** Returns the conflict of a line with an earlier line, if any: the same identifier or unique value. */
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

/**
 * A set of texts that takes eight bytes per hash; the probability of a collision among a million texts is below 10^-7.
 */
class SeenTexts {
  #slots = new BigUint64Array(1 << 10)
  #size = 0

  /** Adds a text and returns whether it was new. */
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
