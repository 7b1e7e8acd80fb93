import type { PublicCtx } from '../../accounts/context'
import { toWorkOwner } from '../../accounts/work-owner'
import type { Model } from '../../blueprints/model'
import { requireRowScope } from '../../blueprints/permissions'
import { config } from '../../config'
import { yieldToEventLoop } from '../../core/event-loop'
import type { QuotaReservation } from '../../limits/quota-use'
import type { Tx } from '../../storage/port'
import { costlyWork } from '../../tenancy/fair-queue'
import { SliceSize } from '../../tenancy/slice-size'
import type { ShownRow, StoredEntity } from '../store/rows'
import type { ReadableTargets } from '../write/constraints'
import { type DeletedEntity, deleteEntities } from '../write/deletion'
import { parseBody } from '../write/document'
import { createChange, createDraft, requireWritable } from '../write/input'
import { type EntityDraft, insertEntity, TextDraft, toEntityDraft } from '../write/insert'
import type { ReferenceGraph } from '../write/recomputation'
import { RestrictedDelete } from '../write/restricted-delete'
import { updateEntity } from '../write/update'
import { findExistingNames, insertBulk, readDeletedByNames, readStoredByNames } from './bulk-insert'
import { LaterReferences } from './later-references'
import { type Operation, withIdentifier, withStoredParts } from './operation'
import type { Precomputation } from './precomputation'
import { SizeLimit } from './size-limit'
import type { TouchedEntity } from './undo-journal'

export type OperationResult = {
  op: Operation['op']
  identifier: string
  status: number
  row?: ShownRow
  sent?: string[]
}

/** Executes the operations of a batch in one transaction. Consecutive operations of the same kind are done together. */
export class BatchExecutor {
  #results: OperationResult[] = []
  #sizeLimit = new SizeLimit()
  /** The names of the upserts that existed before, and those that operations have created since. */
  #existingNames = new Set<string>()
  #waitedMs = 0
  #creates = new SliceSize(MIN_CREATES_PER_SLICE, MAX_CREATES_PER_SLICE)
  #updates = new SliceSize(MIN_UPDATES_PER_SLICE, MAX_UPDATES_PER_SLICE, UPDATES_SLICE_MS)
  #later: LaterReferences
  /** The index of the current operation. */
  index = 0
  readonly touched: TouchedEntity[] = []
  readonly drafts = new Map<Operation, EntityDraft>()

  /** `references` is required for batches with deletions; `reservation` where there is a quota of entities. */
  constructor(
    private tx: Tx,
    private model: Model,
    private ctx: PublicCtx,
    private readable: ReadableTargets,
    private operations: Operation[],
    private precomputation: Precomputation,
    private options: { references?: ReferenceGraph; reservation?: QuotaReservation } = {},
  ) {
    this.#later = new LaterReferences(model, operations)
    this.readable = { ...readable, later: this.#later }
  }

  async execute(): Promise<OperationResult[]> {
    this.precomputation.startWrite()
    this.#later.reset()
    this.options.reservation?.reset()
    const upserted = this.operations.filter(({ op }) => op === 'upsert').map(({ name }) => name)
    this.#existingNames = await findExistingNames(this.tx, this.model, upserted)
    while (this.#results.length < this.operations.length) {
      const from = this.#results.length
      this.index = from
      const began = performance.now()
      const size = await this.#executeNext(this.operations[from]!)
      const ms = performance.now() - began
      size?.record(this.#results.length - from, ms)
      await this.#letOthersRun(ms)
    }
    const missing = await this.#later.findMissing(this.tx, this.readable.scopes.get(this.model.key))
    if (missing) {
      this.index = missing.index
      throw missing.error
    }
    this.precomputation.assertComplete()
    return this.#results
  }

  /** Executes some operations of the same kind. Returns the number of those that is adapted to how long they take. */
  async #executeNext(next: Operation): Promise<SliceSize | undefined> {
    if (next.op === 'delete') await this.#deleteNext()
    else if (this.#isCreate(next)) {
      await this.#createNext()
      return this.#creates
    } else {
      await this.#updateNext()
      return this.#updates
    }
  }

  /** Others have their turn. Where the database is in this process, it has taken all of the time of the operations. */
  async #letOthersRun(ms: number) {
    await yieldToEventLoop()
    if (this.ctx.place?.cluster) return
    costlyWork.chargeThreadTime(ms)
    if (this.#waitedMs > MAX_WAIT_MS) return
    const began = performance.now()
    await costlyWork.run(toWorkOwner(this.ctx), async () => {})
    this.#waitedMs += performance.now() - began
  }

  #isCreate = ({ op, name }: Operation) => op === 'create' || (op === 'upsert' && !this.#existingNames.has(name))

  /** Inserts the operations before an invalid one first, so that the first error of the batch is reported. */
  async #createNext() {
    const { tx, model, ctx, readable, index } = this
    const drafts: EntityDraft[] = []
    let flaw: { error: unknown } | undefined
    const limit = ctx.place?.cluster ? CREATES_PER_REMOTE_WRITE : this.#creates.rows
    for (const operation of this.operations.slice(index, index + limit)) {
      if (!this.#isCreate(operation)) break
      if (drafts.length && drafts.length % MAX_CREATES_PER_SLICE === 0) await yieldToEventLoop()
      try {
        const draft = this.#toDraft(operation)
        this.options.reservation?.add(1)
        drafts.push(draft)
        this.drafts.set(operation, draft)
      } catch (error) {
        flaw = { error }
        break
      }
      if (operation.name) this.#existingNames.add(operation.name)
    }
    const inserted = await insertBulk(tx, model, drafts, readable, this.#sizeLimit)
    for (const [n, draft] of drafts.entries()) {
      if (!inserted) this.index = index + n
      const { seq, row } = inserted?.[n] ?? (await insertEntity(tx, model, draft, readable))
      if (!inserted) this.#sizeLimit.consume(row[0].length)
      this.touched.push({ seq, _id: draft._id })
      this.#results.push({ op: this.operations[index + n]!.op, identifier: draft.identifier, status: 201, row })
    }
    if (!flaw) return
    this.index = index + drafts.length
    throw flaw.error
  }

  #toDraft(operation: Operation): EntityDraft {
    const { model } = this
    const { actor } = this.ctx
    const { _id, name, texts } = operation
    if (texts?.model === model) return new TextDraft(texts, _id, name || _id, actor)
    const { doc, identity } = createDraft(model, actor, withIdentifier(operation), _id)
    return toEntityDraft(model, identity, this.precomputation.getComputed(operation, doc, identity), actor)
  }

  /**
   * Returns the next operations of the given kind, up to the first that names an unknown entity or one named before.
   */
  async #takeDistinct<Row extends { seq: number }>(
    limit: number,
    isOfKind: (operation: Operation) => boolean,
    find: (names: string[]) => Promise<Map<string, Row>>,
  ) {
    const next = this.operations.slice(this.index, this.index + limit)
    const other = next.findIndex((operation) => !isOfKind(operation))
    const sameKind = other < 0 ? next : next.slice(0, other)
    const found = await find(sameKind.map(({ name }) => name))
    const seqs = new Set<number>()
    const repeated = sameKind.findIndex(({ name }) => {
      const seq = found.get(name)?.seq
      return seq === undefined || seqs.size === seqs.add(seq).size
    })
    return { found, distinct: repeated < 0 ? sameKind : sameKind.slice(0, Math.max(1, repeated)) }
  }

  /** Updates existing entities, each of them once. */
  async #updateNext() {
    const { tx, model, index } = this
    const changes = (operation: Operation) => operation.op !== 'delete' && !this.#isCreate(operation)
    const limit = this.ctx.place?.cluster ? MAX_UPDATES_PER_SLICE : this.#updates.rows
    const { distinct, found } = await this.#takeDistinct(limit, changes, (names) => readStoredByNames(tx, model, names))
    // With unique fields or limitations, an update depends on the updates before it.
    if (model.limitations?.length || model.fields.some(({ unique }) => unique)) {
      for (const operation of distinct) {
        this.index = this.#results.length
        this.#results.push(await this.#updateOne(operation, found))
      }
      return
    }
    const settled = await Promise.allSettled(distinct.map((operation) => this.#updateOne(operation, found)))
    for (const [n, one] of settled.entries()) {
      this.index = index + n
      if (one.status === 'rejected') throw one.reason
      this.#results.push(one.value)
    }
  }

  async #updateOne(operation: Operation, storedByName: Map<string, StoredEntity>): Promise<OperationResult> {
    const { tx, model, ctx, readable } = this
    const { op, name } = operation
    const before = requireWritable(model, storedByName.get(name), requireRowScope(model, 'update', ctx.actor), ctx)
    // Consumed before the update, because the work grows with the size of the entity.
    this.#sizeLimit.consume(before.shown.length)
    this.touched.push({ seq: before.seq, _id: before._id, before })
    const { doc, known, sent, ...changed } = createChange(
      model,
      ctx,
      before,
      parseBody(withStoredParts(operation, before), ctx.actor),
    )
    const computedDoc = this.precomputation.getComputed(operation, doc, known)
    const row = await updateEntity(tx, model, before, { ...changed, doc: computedDoc }, readable)
    this.#sizeLimit.consume(Math.max(0, row[0].length - before.shown.length))
    return { op, identifier: before.identifier, status: 200, row, sent }
  }

  /** Removes entities together, so that references among them do not block the removal. */
  async #deleteNext() {
    const { tx, model, ctx, index } = this
    const removes = ({ op }: Operation) => op === 'delete'
    const { distinct, found } = await this.#takeDistinct(Number.POSITIVE_INFINITY, removes, (names) =>
      readDeletedByNames(tx, model, names),
    )
    const rowScope = requireRowScope(model, 'delete', ctx.actor)
    const entities = distinct.map(({ name }, n) => {
      this.index = index + n
      return requireWritable(model, found.get(name), rowScope, ctx)
    })
    const deleted = await deleteEntities(tx, entities, { references: this.options.references!, by: ctx }).catch(
      (error) => {
        if (!(error instanceof RestrictedDelete)) throw error
        const restricted = entities.findIndex(({ identifier }) => error.isRestricted(identifier))
        this.index = index + Math.max(0, restricted)
        throw restricted < 0 ? error : error.narrow(entities[restricted]!.identifier)
      },
    )
    this.options.reservation?.add(-deleted.length)
    await this.#forgetNames(entities, deleted)
    for (const { identifier } of entities) this.#results.push({ op: 'delete', identifier, status: 200 })
  }

  /** An upsert after the removal creates the entity again. */
  async #forgetNames(entities: Pick<StoredEntity, '_id' | 'identifier'>[], deleted: DeletedEntity[]) {
    for (const { _id, identifier } of entities) for (const name of [_id, identifier]) this.#existingNames.delete(name)
    if (deleted.length > entities.length)
      this.#existingNames = await findExistingNames(this.tx, this.model, [...this.#existingNames])
  }
}

// Entities at a time, so that others get their turn.
const [MIN_UPDATES_PER_SLICE, MAX_UPDATES_PER_SLICE] = [10, 50]
const [MIN_CREATES_PER_SLICE, MAX_CREATES_PER_SLICE] = [32, 128]
const UPDATES_SLICE_MS = 2
const CREATES_PER_REMOTE_WRITE = 1_000 // where the thread is free while the database works, fewer round trips are better
/** How much longer (ms) a transaction lasts for the turns of others, as it must end before its deadline. */
const MAX_WAIT_MS = config.ATOLL_WRITE_DEADLINE / 2
