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
type ComputeResult = ComputeRequest & ({ whole: ComputedDoc } | { error: unknown })

const MAX_ATTEMPTS = 200

/**
 * What formulas make of the entities of operations. That takes its time, so it is worked out before the write; but a
 * change, or what follows a removal, depends on what is there. So a write that comes upon anything else than was worked
 * out goes on only to find out what else there is, and keeps nothing; then it is done again.
 */
export class Precomputation {
  #results = new Map<Operation, ComputeResult>()
  #requests = new Map<Operation, ComputeRequest>()

  constructor(
    private model: Model,
    private ctx: PublicCtx,
    private operations: Operation[],
  ) {}

  /** Does a write, and again until nothing is missing. Each time at least one operation more is known. */
  async runWrite<T>(write: () => Promise<T>): Promise<T> {
    if (!this.model.formulas.length) return write()
    this.#requestNew()
    for (let tries = 1; ; tries++) {
      await this.#computeRequested()
      try {
        return await write()
      } catch (error) {
        // What is refused may be so only because something was missing.
        if (
          !this.#requests.size ||
          tries === MAX_ATTEMPTS ||
          (error instanceof Busy && !(error instanceof NotPrecomputed))
        )
          throw error
      }
    }
  }

  /** A write begins: what it asks for counts, and not what one before it did. */
  startWrite() {
    this.#requests.clear()
  }

  /** The whole document, or for want of that the one that it would be made of. */
  getComputed(operation: Operation, draft: Doc, identity: EntityIdentity): ComputedDoc {
    if (!this.model.formulas.length) return draft as ComputedDoc
    const doc = withoutComputed(this.model, draft)
    const result = this.#results.get(operation)
    if (!result || !Bun.deepEquals({ doc: result.doc, known: result.identity }, { doc, known: identity })) {
      this.#requests.set(operation, { doc, identity })
      return doc as ComputedDoc
    }
    if ('error' in result) throw result.error
    return result.whole
  }

  /** @throws NotPrecomputed */
  assertComplete() {
    if (this.#requests.size) throw new NotPrecomputed()
  }

  /** New entities are made of nothing but what is sent. */
  #requestNew() {
    const { model, ctx } = this
    for (const operation of this.operations.filter(({ op }) => op === 'create'))
      try {
        this.#requests.set(operation, createDraft(model, ctx.actor, withIdentifier(operation), operation._id))
      } catch {
        return // The write tells it, unless something before it is refused.
      }
  }

  async #computeRequested() {
    const { model, ctx } = this
    const sizeLimit = new SizeLimit()
    for (const [operation, request] of this.#requests) {
      const result = await Promise.resolve(computeFields(model, request.doc, request.identity, ctx.actor))
        .then((whole) => {
          sizeLimit.consume(JSON.stringify(whole).length)
          return { whole }
        })
        .catch((error: unknown) => ({ error }))
      this.#results.set(operation, { ...request, doc: withoutComputed(model, request.doc), ...result })
      await yieldToEventLoop()
    }
    this.#requests.clear()
  }
}
