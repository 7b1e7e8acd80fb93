import { Problem } from './problem'

/** 503 BUSY: too much of this kind is under way or waits, a lock could not be taken, or a write took too long. */
export class Busy extends Problem {
  constructor(cause?: unknown, message = 'The server is busy. Try again in a moment.') {
    super(503, 'BUSY', message, { cause, headers: { 'retry-after': '1' } })
  }
}
