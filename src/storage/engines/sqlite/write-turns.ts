import { Busy } from '../../errors'

/** What a process and the arbiter tell each other about the turn to write to a file. */
export type TurnMessage = { act: 'request' | 'release' | 'grant' | 'recall'; file: string }

const HOLD_MS = 20

type Turn = {
  state: 'absent' | 'requested' | 'held'
  isInUse: boolean
  /** Whether another process waits for it. */
  isRecalled: boolean
  /** Since when it is held (ms). */
  since: number
  waiting: (() => void)[]
}

/**
 * The turns of this process to write to files that several processes serve. Processes that wait for SQLite's lock poll
 * for it, which blocks their thread and starves some of them. A turn is kept until another process asks for it, so that
 * a file with a single writer costs no messages.
 */
export class WriteTurns {
  #turns = new Map<string, Turn>()

  constructor(
    private send: (message: TurnMessage) => void,
    /** How long to wait for a turn (ms). */
    private timeout: number,
    /** How long a process that writes all the time keeps its turn while others wait (ms). */
    private holdFor = HOLD_MS,
  ) {}

  receive({ act, file }: TurnMessage) {
    const turn = this.#turnOf(file)
    if (act === 'grant') {
      turn.state = 'held'
      turn.since = performance.now()
      this.#useNext(file, turn)
    } else if (act === 'recall' && turn.state === 'held') {
      turn.isRecalled = true
      if (!turn.isInUse) this.#giveBack(file, turn)
    }
  }

  /** Resolves when this process may write; at once when it holds the turn. @throws 503 BUSY when that takes too long */
  acquire(file: string): Promise<void> | undefined {
    const turn = this.#turnOf(file)
    if (turn.state === 'held' && !turn.isInUse) {
      turn.isInUse = true
      return
    }
    if (turn.state === 'absent') this.#request(file, turn)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    turn.waiting.push(resolve)
    const timer = setTimeout(() => {
      turn.waiting = turn.waiting.filter((waiting) => waiting !== resolve)
      reject(new Busy('Another process writes to the database.'))
    }, this.timeout)
    return promise.finally(() => clearTimeout(timer))
  }

  /** Ends the use of a turn, and gives it back when another process waits for it. */
  release(file: string) {
    const turn = this.#turnOf(file)
    turn.isInUse = false
    if (!turn.isRecalled) this.#useNext(file, turn)
    else if (performance.now() - turn.since >= this.holdFor) this.#giveBack(file, turn)
    else {
      this.#useNext(file, turn)
      // Handing a turn over takes time in which nobody writes, so the writes that are waiting here share it.
      setImmediate(() => {
        if (turn.isRecalled && !turn.isInUse && turn.state === 'held') this.#giveBack(file, turn)
      })
    }
  }

  /** Gives the turn of a file back that is closed. */
  close(file: string) {
    const turn = this.#turns.get(file)
    if (!turn || turn.isInUse || turn.waiting.length || turn.state === 'requested') return
    if (turn.state === 'held') this.send({ act: 'release', file })
    this.#turns.delete(file)
  }

  #turnOf(file: string): Turn {
    const existing = this.#turns.get(file)
    if (existing) return existing
    const turn: Turn = { state: 'absent', isInUse: false, isRecalled: false, since: 0, waiting: [] }
    this.#turns.set(file, turn)
    return turn
  }

  #request(file: string, turn: Turn) {
    turn.state = 'requested'
    this.send({ act: 'request', file })
  }

  #useNext(_file: string, turn: Turn) {
    const next = turn.waiting.shift()
    turn.isInUse = !!next
    next?.()
  }

  #giveBack(file: string, turn: Turn) {
    turn.state = 'absent'
    turn.isRecalled = false
    this.send({ act: 'release', file })
    if (turn.waiting.length) this.#request(file, turn)
  }
}

/** Gives the turn of each file to one process after the other, in the order of their requests. */
export class TurnArbiter {
  #files = new Map<string, { holder: number; queue: number[] }>()

  constructor(private send: (to: number, message: TurnMessage) => void) {}

  receive(from: number, { act, file }: TurnMessage) {
    const entry = this.#files.get(file)
    if (act === 'release' && entry?.holder === from) return this.#grantNext(file, entry.queue)
    if (act !== 'request') return
    if (!entry) return this.#grant(from, file, [])
    entry.queue.push(from)
    if (entry.queue.length === 1) this.send(entry.holder, { act: 'recall', file })
  }

  /** Takes back what a process held or waited for that has ended. */
  remove(process: number) {
    for (const [file, entry] of this.#files) {
      entry.queue = entry.queue.filter((waiting) => waiting !== process)
      if (entry.holder === process) this.#grantNext(file, entry.queue)
    }
  }

  #grantNext(file: string, [next, ...others]: number[]) {
    if (next === undefined) this.#files.delete(file)
    else this.#grant(next, file, others)
  }

  #grant(holder: number, file: string, queue: number[]) {
    this.#files.set(file, { holder, queue })
    this.send(holder, { act: 'grant', file })
    if (queue.length) this.send(holder, { act: 'recall', file })
  }
}
