import type { PublicCtx } from '../../accounts/context'
import type { Model } from '../../blueprints/model'
import { yieldToEventLoop } from '../../core/event-loop'
import { Busy } from '../../storage/errors'
import type { ComputedDoc, Doc } from '../store/doc'
import { computeFields, type EntityIdentity, withoutComputed } from '../write/computed-fields'
import { createDraft } from '../write/input'
import { NotPrecomputed } from '../write/recomputation'
import { type Operation, withIdentifier } from './operation'
import { SizeLimit } from './size-limit'

type ComputeRequest = { doc: Doc; identity: EntityIdentity }
type ComputeResult = ComputeRequest & ({ computedDoc: ComputedDoc } | { error: unknown })

const MAX_ATTEMPTS = 200

/**
 * Computes the formulas of a batch's entities before the transaction, because they are slow. Updates, and operations
 * after a deletion, depend on stored entities. So a transaction that meets an entity without a matching result
 * continues only to collect further requests, and is rolled back; it is repeated once they have been computed.
 */
export class Precomputation {
  #results = new Map<Operation, ComputeResult>()
  #requests = new Map<Operation, ComputeRequest>()

  constructor(
    private model: Model,
    private ctx: PublicCtx,
    private operations: Operation[],
  ) {}

  /** Runs a write, and repeats it until no result is missing. Each round computes at least one more operation. */
  async runWrite<T>(write: () => Promise<T>): Promise<T> {
    if (!this.model.formulas.length) return write()
    this.#requestNew()
    for (let tries = 1; ; tries++) {
      await this.#computeRequested()
      try {
        return await write()
      } catch (error) {
        // A rejection may be caused only by a missing computed value.
        if (
          !this.#requests.size ||
          tries === MAX_ATTEMPTS ||
          (error instanceof Busy && !(error instanceof NotPrecomputed))
        )
          throw error
      }
    }
  }

  /** Called when a transaction begins: requests of earlier attempts are dropped. */
  startWrite() {
    this.#requests.clear()
  }

  /** Returns the computed document; when it is still missing, requests it and returns the document without it. */
  getComputed(operation: Operation, draft: Doc, identity: EntityIdentity): ComputedDoc {
    if (!this.model.formulas.length) return draft as ComputedDoc
    const doc = withoutComputed(this.model, draft)
    const result = this.#results.get(operation)
    if (!result || !Bun.deepEquals({ doc: result.doc, identity: result.identity }, { doc, identity })) {
      this.#requests.set(operation, { doc, identity })
      return doc as ComputedDoc
    }
    if ('error' in result) throw result.error
    return result.computedDoc
  }

  /** @throws NotPrecomputed */
  assertComplete() {
    if (this.#requests.size) throw new NotPrecomputed()
  }

  /** New entities depend only on the operation, so they are computed before the first attempt. */
  #requestNew() {
    const { model, ctx } = this
    for (const operation of this.operations.filter(({ op }) => op === 'create'))
      try {
        this.#requests.set(operation, createDraft(model, ctx.actor, withIdentifier(operation), operation._id))
      } catch {
        return // The write reports the error, unless an earlier operation is rejected.
      }
  }

  async #computeRequested() {
    const { model, ctx } = this
    const sizeLimit = new SizeLimit()
    for (const [operation, request] of this.#requests) {
      const result = await Promise.resolve(computeFields(model, request.doc, request.identity, ctx.actor))
        .then((computedDoc) => {
          sizeLimit.consume(JSON.stringify(computedDoc).length)
          return { computedDoc }
        })
        .catch((error: unknown) => ({ error }))
      this.#results.set(operation, { ...request, doc: withoutComputed(model, request.doc), ...result })
      await yieldToEventLoop()
    }
    this.#requests.clear()
  }
}
