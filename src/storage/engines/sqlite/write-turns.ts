import { Busy } from '../../errors'

/** What a process and the arbiter tell each other about the turn to write to a file. */
export type TurnMessage = { act: 'request' | 'release' | 'grant' | 'recall'; file: string }

const HOLD_MS = 20
const TAKEOVER_MS = 500 // longer than most writes, and shorter than others wait for their turn

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

type GrantedTurn = { holder: number; queue: number[]; takeoverTimer?: ReturnType<typeof setTimeout> }

/**
 * Gives the turn of each file to one process after the other, in the order of their requests. A process that does not
 * give it back loses it, because SQLite's lock protects the file all the same.
 */
export class TurnArbiter {
  #files = new Map<string, GrantedTurn>()

  constructor(
    private send: (to: number, message: TurnMessage) => void,
    /** After how long a turn is taken from a process that does not give it back (ms). */
    private takeoverAfter = TAKEOVER_MS,
  ) {}

  receive(from: number, { act, file }: TurnMessage) {
    const turn = this.#files.get(file)
    if (act === 'release' && turn?.holder === from) return this.#grantNext(file, turn)
    if (act !== 'request') return
    if (!turn) return this.#grant(from, file, [])
    turn.queue.push(from)
    if (turn.queue.length === 1) this.#recall(file, turn)
  }

  /** Takes back what a process held or waited for that has ended. */
  remove(process: number) {
    for (const [file, turn] of this.#files) {
      turn.queue = turn.queue.filter((waiting) => waiting !== process)
      if (turn.holder === process) this.#grantNext(file, turn)
    }
  }

  #grantNext(file: string, { queue: [next, ...others], takeoverTimer }: GrantedTurn) {
    clearTimeout(takeoverTimer)
    if (next === undefined) this.#files.delete(file)
    else this.#grant(next, file, others)
  }

  #grant(holder: number, file: string, queue: number[]) {
    const turn: GrantedTurn = { holder, queue }
    this.#files.set(file, turn)
    this.send(holder, { act: 'grant', file })
    if (queue.length) this.#recall(file, turn)
  }

  #recall(file: string, turn: GrantedTurn) {
    this.send(turn.holder, { act: 'recall', file })
    clearTimeout(turn.takeoverTimer)
    turn.takeoverTimer = setTimeout(() => {
      if (turn.queue.length) this.#grantNext(file, turn)
    }, this.takeoverAfter)
  }
}
