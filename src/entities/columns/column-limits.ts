import { config } from '../../config'

/** How much the columns of a process may hold; without bytes, there are none. */
export const columnLimits = {
  /** Entities of a blueprint. */
  rows: 250_000,
  bytes: config.ATOLL_COLUMN_CACHE,
  /** Entities that one step reads. */
  step: 1_000,
  /** Whether the first query of some fields is answered by the database, and only the next ones read columns. */
  isFirstPlain: true,
  /** Fewer rows than this are all tested; of more, those in the order of the query until the page is full. */
  fewRows: 2_000,
}
