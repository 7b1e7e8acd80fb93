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

/** A write needs computed values that have not been computed yet. */
export class NotPrecomputed extends Busy {}

type RecomputeRequest = { blueprint: string; stored: StoredEntity; doc: Doc }
/** An entity with its recomputed document, which is missing when a formula has no valid result. */
export type ComputedEntity = { model: Model; text: string; version: number; computedDoc?: ComputedDoc }

/**
 * Recomputes the formulas of entities that lose a reference. Formulas are slow, so they are not evaluated in the
 * deleting transaction. A transaction that meets an entity without a result continues only to collect further requests,
 * and is rolled back; it is repeated once they have been computed.
 */
export class Recomputation {
  #results = new Map<string, ComputedEntity>()
  #requests = new Map<string, RecomputeRequest>()

  constructor(private tenant: Tenant) {}

  /** Called when a transaction begins: requests of earlier attempts are dropped. */
  startWrite() {
    this.#requests.clear()
  }

  /** Returns the recomputed entity, or requests it and returns undefined. */
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

  /** @throws 503 BUSY when too many formulas are waiting */
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

/** Only a 400 is an error of the formula; a full queue (503) is not. */
function undefinedIfInvalid(error: unknown): undefined {
  if (!(error instanceof Problem && error.status === 400)) throw error
}

/** The references between blueprints, and the recomputation of entities that lose one. */
export type ReferenceGraph = References & { recomputation: Recomputation }
