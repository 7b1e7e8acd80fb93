import type { OpenCtx } from '../../accounts/guard'
import type { Model } from '../../blueprints/model'
import { turn } from '../../core/turn'
import { Busy } from '../../storage/errors'
import { computed, type Known, uncomputed } from '../computed'
import type { Complete, Doc } from '../document'
import { draftOf } from '../drafts'
import { Unready } from '../recomputed'
import { named, type Operation } from './operation'
import { Room } from './room'

type Asked = { doc: Doc; known: Known }
type Made = Asked & ({ whole: Complete } | { error: unknown })

const TRIES = 200

/**
 * What formulas make of the entities of operations. That takes its time, so it is worked out before the write; but a
 * change, or what follows a removal, depends on what is there. So a write that comes upon anything else than was worked
 * out goes on only to find out what else there is, and keeps nothing; then it is done again.
 */
export class Ahead {
  #made = new Map<Operation, Made>()
  #asked = new Map<Operation, Asked>()

  constructor(
    private model: Model,
    private ctx: OpenCtx,
    private operations: Operation[],
  ) {}

  /** Does a write, and again until nothing is missing. Each time at least one operation more is known. */
  async through<T>(write: () => Promise<T>): Promise<T> {
    if (!this.model.formulas.length) return write()
    this.#expect()
    for (let tries = 1; ; tries++) {
      await this.#workOut()
      try {
        return await write()
      } catch (error) {
        // What is refused may be so only because something was missing.
        if (!this.#asked.size || tries === TRIES || (error instanceof Busy && !(error instanceof Unready))) throw error
      }
    }
  }

  /** A write begins: what it asks for counts, and not what one before it did. */
  begin() {
    this.#asked.clear()
  }

  /** The whole document, or for want of that the one that it would be made of. */
  complete(operation: Operation, draft: Doc, known: Known): Complete {
    if (!this.model.formulas.length) return draft as Complete
    const doc = uncomputed(this.model, draft)
    const made = this.#made.get(operation)
    if (!made || !Bun.deepEquals({ doc: made.doc, known: made.known }, { doc, known })) {
      this.#asked.set(operation, { doc, known })
      return doc as Complete
    }
    if ('error' in made) throw made.error
    return made.whole
  }

  /** @throws Unready */
  end() {
    if (this.#asked.size) throw new Unready()
  }

  /** New entities are made of nothing but what is sent. */
  #expect() {
    const { model, ctx } = this
    for (const operation of this.operations.filter(({ op }) => op === 'create'))
      try {
        this.#asked.set(operation, draftOf(model, ctx.actor, named(operation), operation._id))
      } catch {
        return // The write tells it, unless something before it is refused.
      }
  }

  async #workOut() {
    const { model, ctx } = this
    const room = new Room()
    for (const [operation, asked] of this.#asked) {
      const made = await Promise.resolve(computed(model, asked.doc, asked.known, ctx.actor))
        .then((whole) => {
          room.take(JSON.stringify(whole).length)
          return { whole }
        })
        .catch((error: unknown) => ({ error }))
      this.#made.set(operation, { ...asked, doc: uncomputed(model, asked.doc), ...made })
      await turn()
    }
    this.#asked.clear()
  }
}
