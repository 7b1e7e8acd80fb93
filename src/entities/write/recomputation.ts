import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import type { References } from '../../blueprints/references'
import { yieldToEventLoop } from '../../core/event-loop'
import { Problem } from '../../core/problem'
import { Busy } from '../../storage/errors'
import type { Tenant } from '../../tenancy/tenants'
import type { ComputedDoc, Doc } from '../store/doc'
import type { StoredEntity } from '../store/rows'
import { computeFields } from './computed-fields'

/** Formulas have not been worked out yet for all that a write would keep. */
export class NotPrecomputed extends Busy {}

type RecomputeRequest = { blueprint: string; stored: StoredEntity; doc: Doc }
/** What formulas make of an entity; no document where they make nothing that fits. */
export type ComputedEntity = { model: Model; text: string; version: number; computedDoc?: ComputedDoc }

/**
 * What formulas make of entities that lose what they lead to. That takes its time, so it is no work for the write that
 * removes: one that comes upon an entity which was not worked out goes on only to find out what else there is, and keeps
 * nothing; then it is done again.
 */
export class Recomputation {
  #results = new Map<string, ComputedEntity>()
  #requests = new Map<string, RecomputeRequest>()

  constructor(private tenant: Tenant) {}

  /** A write begins: what it asks for counts, and not what one before it did. */
  startWrite() {
    this.#requests.clear()
  }

  /** Nothing for now where it has to be worked out first. */
  get(blueprint: string, stored: StoredEntity, doc: Doc): ComputedEntity | undefined {
    const result = this.#results.get(stored._id)
    if (result?.version === stored.version && result.text === JSON.stringify(doc)) return result
    this.#requests.set(stored._id, { blueprint, stored, doc })
  }

  get isReady() {
    return !this.#requests.size
  }

  /** @throws NotPrecomputed */
  assertReady() {
    if (!this.isReady) throw new NotPrecomputed()
  }

  /** @throws 503 BUSY for too many formulas at a time */
  async computeRequested() {
    for (const { blueprint, stored, doc } of this.#requests.values()) {
      const model = await getModel(this.tenant, blueprint)
      const computedDoc = await Promise.resolve(computeFields(model, doc, stored, undefined)).catch(undefinedIfInvalid)
      this.#results.set(stored._id, { model, text: JSON.stringify(doc), version: stored.version, computedDoc })
      await yieldToEventLoop()
    }
    this.#requests.clear()
  }
}

/** Only 400 is the formula's own doing: a queue that is full (503) says nothing of the entity. */
function undefinedIfInvalid(error: unknown): undefined {
  if (!(error instanceof Problem && error.status === 400)) throw error
}

/** What refers to what, and what formulas make of those that refer to what goes. */
export type ReferenceGraph = References & { recomputation: Recomputation }
