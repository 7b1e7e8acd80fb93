import type { OpenCtx } from '../../accounts/guard'
import type { Model } from '../../blueprints/model'
import { reachOrRefuse } from '../../blueprints/rules'
import type { Tx } from '../../storage/port'
import { readInput } from '../document'
import { changeStored, draftOf, reachable } from '../entities'
import * as rows from '../rows'
import { addTogether, namesThere, storedAmong } from './together'
import type { Touched } from './undo'

export const OPS = ['create', 'update', 'upsert', 'delete'] as const

/** What is to be done; `name` is empty for a new entity that has no identifier of its own. */
export type Operation = { op: (typeof OPS)[number]; name: string; data: unknown }
export type Done = { op: Operation['op']; identifier: string; status: number; row?: rows.Shown; sent?: string[] }

/** The operations of a batch, in one transaction. Those of a kind that follow each other are done together. */
export class Run {
  #done: Done[] = []
  /** The names that entities answered to before, and those that operations have dealt with since. */
  #known = new Set<string>()
  /** Which operation is being done. */
  at = 0
  readonly touched: Touched[] = []

  constructor(
    private tx: Tx,
    private model: Model,
    private ctx: OpenCtx,
    private sight: rows.Sight,
    private operations: Operation[],
  ) {}

  async done(): Promise<Done[]> {
    const upserted = this.operations.filter(({ op }) => op === 'upsert').map(({ name }) => name)
    this.#known = await namesThere(this.tx, this.model, upserted)
    while (this.#done.length < this.operations.length) {
      this.at = this.#done.length
      const next = this.operations[this.at]!
      if (this.#makes(next)) await this.#make()
      else await this.#alter(next.op === 'delete')
    }
    return this.#done
  }

  #makes = ({ op, name }: Operation) => op === 'create' || (op === 'upsert' && !this.#known.has(name))

  /** Those before one that makes no sense are tried before that is refused. */
  async #make() {
    const { tx, model, ctx, sight, at } = this
    const drafts: rows.Draft[] = []
    let flaw: { error: unknown } | undefined
    for (const operation of this.operations.slice(at)) {
      if (!this.#makes(operation)) break
      try {
        drafts.push(draftOf(model, ctx.actor, named(operation)))
      } catch (error) {
        flaw = { error }
        break
      }
      if (operation.name) this.#known.add(operation.name)
    }
    const together = await addTogether(tx, model, drafts, sight)
    for (const [n, draft] of drafts.entries()) {
      if (!together) this.at = at + n
      const { seq, row } = together?.[n] ?? (await rows.insertOne(tx, model, draft, sight))
      this.touched.push({ seq })
      this.#done.push({ op: this.operations[at + n]!.op, identifier: draft.identifier, status: 201, row })
    }
    if (!flaw) return
    this.at = at + drafts.length
    throw flaw.error
  }

  /** Changes or removes entities that are there, each only once. */
  async #alter(removing: boolean) {
    const { tx, model, at } = this
    const run: Operation[] = []
    for (const operation of this.operations.slice(at, at + AT_ONCE)) {
      if ((operation.op === 'delete') !== removing || this.#makes(operation)) break
      run.push(operation)
    }
    const found = await storedAmong(
      tx,
      model,
      run.map(({ name }) => name),
    )
    const seqs = new Set<number>()
    const distinct = run.findIndex(({ name }) => {
      const seq = found.get(name)?.seq
      return seq === undefined || seqs.size === seqs.add(seq).size
    })
    const some = distinct < 0 ? run : run.slice(0, Math.max(1, distinct))
    if (removing) return this.#remove(some, found)
    // Where values must be unique, a change depends on those before it.
    if (model.limitations?.length || model.fields.some(({ unique }) => unique)) {
      for (const operation of some) this.#done.push(await this.#change(operation, found))
      return
    }
    const settled = await Promise.allSettled(some.map((operation) => this.#change(operation, found)))
    for (const [n, one] of settled.entries()) {
      this.at = at + n
      if (one.status === 'rejected') throw one.reason
      this.#done.push(one.value)
    }
  }

  async #change({ op, name, data }: Operation, found: Map<string, rows.Stored>): Promise<Done> {
    const { tx, model, ctx, sight } = this
    const before = reachable(model, found.get(name), reachOrRefuse(model, 'update', ctx.actor), ctx)
    this.touched.push({ seq: before.seq, before })
    const changed = await changeStored(tx, model, ctx, before, readInput(data, ctx.actor), sight)
    return { op, identifier: before.identifier, status: 200, ...changed }
  }

  async #remove(some: Operation[], found: Map<string, rows.Stored>) {
    const reach = reachOrRefuse(this.model, 'delete', this.ctx.actor)
    let left = some.map(({ name }, n) => {
      this.at = this.#done.length + n
      return reachable(this.model, found.get(name), reach, this.ctx)
    })
    for (const { identifier } of left) this.#done.push({ op: 'delete', identifier, status: 200 })
    while (left.length) left = left.slice(await rows.erase(this.tx, left))
  }
}

const AT_ONCE = 100 // entities in memory

/** What is sent of an entity, under this name. What is no object is refused where it is read. */
const named = ({ data, name: identifier }: Pick<Operation, 'data' | 'name'>) =>
  identifier && data !== null && typeof data === 'object' && !Array.isArray(data) ? { ...data, identifier } : data
