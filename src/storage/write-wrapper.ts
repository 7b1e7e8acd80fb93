import type { Store, Tx } from './port'

/** Runs before and after the work of a write, in its transaction. */
type AroundWork = <T>(tx: Tx, work: () => Promise<T>) => Promise<T>

/**
 * Returns a `write` that runs `around` around the work of each write. It passes the options on, so that no wrapper can
 * forget them; but such work is done on its own.
 */
export const wrapWrite =
  (write: Store['write'], around: AroundWork): Store['write'] =>
  (work, { joint: _, ...options } = {}) =>
    write((tx) => around(tx, () => work(tx)), options)
