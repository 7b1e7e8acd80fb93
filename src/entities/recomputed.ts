import { modelOf } from '../blueprints/blueprints'
import type { Model } from '../blueprints/model'
import { Problem } from '../core/problem'
import { turn } from '../core/turn'
import { Busy } from '../storage/errors'
import type { Tenant } from '../tenancy/tenants'
import { computed } from './computed'
import type { Complete, Doc } from './document'
import type { Stored } from './rows'

/** Formulas have not been worked out yet for all that a write would keep. */
export class Unready extends Busy {}

type Asked = { blueprint: string; stored: Stored; doc: Doc }
/** What formulas make of an entity; no document where they make nothing that fits. */
export type Made = { model: Model; text: string; version: number; whole?: Complete }

/**
 * What formulas make of entities that lose what they lead to. That takes its time, so it is no work for the write that
 * removes: one that comes upon an entity which was not worked out goes on only to find out what else there is, and keeps
 * nothing; then it is done again.
 */
export class Recomputed {
  #made = new Map<string, Made>()
  #asked = new Map<string, Asked>()

  constructor(private tenant: Tenant) {}

  /** A write begins: what it asks for counts, and not what one before it did. */
  begin() {
    this.#asked.clear()
  }

  /** Nothing for now where it has to be worked out first. */
  of(blueprint: string, stored: Stored, doc: Doc): Made | undefined {
    const made = this.#made.get(stored._id)
    if (made?.version === stored.version && made.text === JSON.stringify(doc)) return made
    this.#asked.set(stored._id, { blueprint, stored, doc })
  }

  get isReady() {
    return !this.#asked.size
  }

  /** @throws Unready */
  end() {
    if (!this.isReady) throw new Unready()
  }

  async workOut() {
    for (const { blueprint, stored, doc } of this.#asked.values()) {
      const model = await modelOf(this.tenant, blueprint)
      const whole = await Promise.resolve(computed(model, doc, stored, undefined)).catch(unfit)
      this.#made.set(stored._id, { model, text: JSON.stringify(doc), version: stored.version, whole })
      await turn()
    }
    this.#asked.clear()
  }
}

function unfit(error: unknown): undefined {
  if (!(error instanceof Problem)) throw error
}
