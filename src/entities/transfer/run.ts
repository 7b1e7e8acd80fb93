import type { OpenCtx } from '../../accounts/guard'
import type { Model } from '../../blueprints/model'
import { reachOrRefuse } from '../../blueprints/rules'
import { turn } from '../../core/turn'
import type { Tx } from '../../storage/port'
import { type Draft, drafted, insertOne } from '../adding'
import { readInput } from '../document'
import { changeOf, draftOf, reachable } from '../drafts'
import { Held } from '../held'
import type { Sight } from '../refusals'
import * as removal from '../removal'
import * as rows from '../rows'
import type { Ahead } from './ahead'
import { named, type Operation } from './operation'
import { Room } from './room'
import { addTogether, leavingAmong, namesThere, storedAmong } from './together'
import type { Touched } from './undo'

export type Done = { op: Operation['op']; identifier: string; status: number; row?: rows.Shown; sent?: string[] }

/** The operations of a batch, in one transaction. Those of a kind that follow each other are done together. */
export class Run {
  #done: Done[] = []
  #room = new Room()
  /** The names that entities answered to before, and those that operations have dealt with since. */
  #known = new Set<string>()
  /** Which operation is being done. */
  at = 0
  readonly touched: Touched[] = []
  readonly made = new Map<Operation, Draft>()

  /** Removals need to know what refers to what. */
  constructor(
    private tx: Tx,
    private model: Model,
    private ctx: OpenCtx,
    private sight: Sight,
    private operations: Operation[],
    private ahead: Ahead,
    private references?: removal.Ties,
  ) {}

  async done(): Promise<Done[]> {
    this.ahead.begin()
    const upserted = this.operations.filter(({ op }) => op === 'upsert').map(({ name }) => name)
    this.#known = await namesThere(this.tx, this.model, upserted)
    while (this.#done.length < this.operations.length) {
      this.at = this.#done.length
      const next = this.operations[this.at]!
      if (this.#makes(next)) await this.#make()
      else if (next.op === 'delete') await this.#remove()
      else await this.#alter()
      await turn()
    }
    this.ahead.end()
    return this.#done
  }

  #makes = ({ op, name }: Operation) => op === 'create' || (op === 'upsert' && !this.#known.has(name))

  /** Those before one that makes no sense are tried before that is refused. */
  async #make() {
    const { tx, model, ctx, sight, at } = this
    const drafts: Draft[] = []
    let flaw: { error: unknown } | undefined
    for (const operation of this.operations.slice(at, at + MADE_AT_ONCE)) {
      if (!this.#makes(operation)) break
      try {
        const { doc, known } = draftOf(model, ctx.actor, named(operation), operation._id)
        const draft = drafted(model, known, this.ahead.complete(operation, doc, known), ctx.actor)
        drafts.push(draft)
        this.made.set(operation, draft)
      } catch (error) {
        flaw = { error }
        break
      }
      if (operation.name) this.#known.add(operation.name)
    }
    const together = await addTogether(tx, model, drafts, sight, this.#room)
    for (const [n, draft] of drafts.entries()) {
      if (!together) this.at = at + n
      const { seq, row } = together?.[n] ?? (await insertOne(tx, model, draft, sight))
      if (!together) this.#room.take(row[0].length)
      this.touched.push({ seq, _id: draft._id })
      this.#done.push({ op: this.operations[at + n]!.op, identifier: draft.identifier, status: 201, row })
    }
    if (!flaw) return
    this.at = at + drafts.length
    throw flaw.error
  }

  /** The operations from here on, as long as they are of that kind, up to one that is the last of its entity's. */
  async #distinct<Row extends { seq: number }>(
    most: number,
    fits: (operation: Operation) => boolean,
    find: (names: string[]) => Promise<Map<string, Row>>,
  ) {
    const next = this.operations.slice(this.at, this.at + most)
    const other = next.findIndex((operation) => !fits(operation))
    const run = other < 0 ? next : next.slice(0, other)
    const found = await find(run.map(({ name }) => name))
    const seqs = new Set<number>()
    const repeated = run.findIndex(({ name }) => {
      const seq = found.get(name)?.seq
      return seq === undefined || seqs.size === seqs.add(seq).size
    })
    return { found, some: repeated < 0 ? run : run.slice(0, Math.max(1, repeated)) }
  }

  /** Changes entities that are there, each only once. */
  async #alter() {
    const { tx, model, at } = this
    const changes = (operation: Operation) => operation.op !== 'delete' && !this.#makes(operation)
    const { some, found } = await this.#distinct(AT_ONCE, changes, (names) => storedAmong(tx, model, names))
    // Where values must be unique, or entities are counted, a change depends on those before it.
    if (model.limitations?.length || model.fields.some(({ unique }) => unique)) {
      for (const operation of some) {
        this.at = this.#done.length
        this.#done.push(await this.#change(operation, found))
      }
      return
    }
    const settled = await Promise.allSettled(some.map((operation) => this.#change(operation, found)))
    for (const [n, one] of settled.entries()) {
      this.at = at + n
      if (one.status === 'rejected') throw one.reason
      this.#done.push(one.value)
    }
  }

  async #change(operation: Operation, found: Map<string, rows.Stored>): Promise<Done> {
    const { tx, model, ctx, sight } = this
    const { op, name, data } = operation
    const before = reachable(model, found.get(name), reachOrRefuse(model, 'update', ctx.actor), ctx)
    // Before the work is done, for it is the more the larger the entity is.
    this.#room.take(before.shown.length)
    this.touched.push({ seq: before.seq, _id: before._id, before })
    const { doc, known, sent, ...changed } = changeOf(model, ctx, before, readInput(data, ctx.actor))
    const whole = this.ahead.complete(operation, doc, known)
    const row = await rows.update(tx, model, before, { ...changed, doc: whole }, sight)
    this.#room.take(Math.max(0, row[0].length - before.shown.length))
    return { op, identifier: before.identifier, status: 200, row, sent }
  }

  /** Removes entities together, so that those among them that refer to each other hold none. */
  async #remove() {
    const { tx, model, ctx, at } = this
    const removes = ({ op }: Operation) => op === 'delete'
    const { some, found } = await this.#distinct(Number.POSITIVE_INFINITY, removes, (names) =>
      leavingAmong(tx, model, names),
    )
    const reach = reachOrRefuse(model, 'delete', ctx.actor)
    const leaving = some.map(({ name }, n) => {
      this.at = at + n
      return reachable(model, found.get(name), reach, ctx)
    })
    const gone = await removal.remove(tx, leaving, { references: this.references!, by: ctx }).catch((error) => {
      const held = error instanceof Held ? leaving.findIndex(({ identifier }) => error.holds(identifier)) : -1
      this.at = at + Math.max(0, held)
      throw error
    })
    await this.#forget(leaving, gone)
    for (const { identifier } of leaving) this.#done.push({ op: 'delete', identifier, status: 200 })
  }

  /** What is upserted after it was removed is made anew. */
  async #forget(leaving: Pick<rows.Stored, '_id' | 'identifier'>[], gone: removal.Leaving[]) {
    for (const { _id, identifier } of leaving) for (const name of [_id, identifier]) this.#known.delete(name)
    if (gone.length > leaving.length) this.#known = await namesThere(this.tx, this.model, [...this.#known])
  }
}

const AT_ONCE = 100 // entities in memory
const MADE_AT_ONCE = 250 // entities, so that those who read get their turn
