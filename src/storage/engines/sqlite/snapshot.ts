import type { Ask } from '../../port'
import type { Session } from './session'

/**
 * Reads of one turn of the event loop share a snapshot, because locking the file for each took longer than reading it.
 * It ends with every commit of this process, so that nobody misses what was acknowledged; what another process commits
 * is seen in the next turn.
 */
export class Snapshot {
  #taken = false

  constructor(private session: Session) {}

  ask: Ask = async (sql, params) => {
    if (!this.#taken) this.#take()
    return this.session.values(sql, params)
  }

  /** The next read sees what is committed by then. */
  end = () => {
    if (!this.#taken) return
    this.#taken = false
    try {
      this.session.values('commit')
    } catch {
      // A failed read has ended it already.
    }
  }

  #take() {
    this.session.values('begin')
    this.#taken = true
    setImmediate(this.end)
  }
}
