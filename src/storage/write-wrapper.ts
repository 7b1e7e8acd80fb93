import type { Store, Tx } from './port'

/** What is done around the work of a write, in its transaction. */
type AroundWork = <T>(tx: Tx, work: () => Promise<T>) => Promise<T>

/** The same `write` with something around the work of each. It hands the options on, so that no wrapper can forget them. */
export const wrapWrite =
  (write: Store['write'], around: AroundWork): Store['write'] =>
  (work, options) =>
    write((tx) => around(tx, () => work(tx)), options)
