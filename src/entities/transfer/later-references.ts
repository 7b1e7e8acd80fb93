import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Tx } from '../../storage/port'
import { findReadable, type LaterEntities, MissingReference } from '../write/constraints'
import type { Operation } from './operation'

type References = Pick<Operation, 'data'>

/** Returns the names of entities of the same blueprint that an operation refers to, each with its field. */
export function listOwnReferences(model: Model, { data }: References): { key: string; identifier: string }[] {
  const { metadata, ...flat } = (data ?? {}) as Record<string, unknown>
  const doc = { ...(metadata as object | undefined), ...flat } as Record<string, unknown>
  return model.fields
    .filter(({ target }) => target === model.key)
    .flatMap(({ key }) => [doc[key] ?? []].flat().map((identifier) => ({ key, identifier: String(identifier) })))
}

/**
 * References among operations of one transaction, which may point to entities that are created later in it. They are
 * checked when all of them have been executed.
 */
export class LaterReferences implements LaterEntities {
  #names: Set<string>
  #expected = new Set<string>()

  constructor(
    private model: Model,
    private operations: Operation[],
  ) {
    const names = operations.filter(({ op }) => op === 'create' || op === 'upsert').map(({ name }) => name)
    this.#names = new Set(names.filter(Boolean))
  }

  /** Called when a transaction begins. */
  reset() {
    this.#expected.clear()
  }

  expect(target: string, identifier: string): boolean {
    if (target !== this.model.key || !this.#names.has(identifier)) return false
    this.#expected.add(identifier)
    return true
  }

  /** Returns the error of the first operation whose reference is still missing, and its index. */
  async findMissing(tx: Tx, scope: RowScope | undefined) {
    if (!this.#expected.size) return
    const readable = await findReadable(tx, this.model.key, scope, [...this.#expected])
    for (const [index, operation] of this.operations.entries())
      for (const { key, identifier } of listOwnReferences(this.model, operation))
        if (this.#expected.has(identifier) && !readable.has(identifier))
          return { index, error: new MissingReference(key, this.model.key, identifier) }
    return
  }
}
