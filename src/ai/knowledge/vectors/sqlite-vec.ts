import { bytesOf } from '../embedding'
import { Closest } from './closest'
import type { Search } from './nearest'
import { chunksOf, filesOf } from './slabs'

const STEP = 500 // chunks that are compared before others get their turn

/** Has the database compare each vector where it lies, so that none is kept in memory. */
export const sqliteVec: Search = async (db, stores, wanted, most) => {
  const found = new Closest(most)
  const distance = { sql: 'vec_distance_cosine(vector, ?)', params: [bytesOf(wanted)], atOnce: STEP }
  for (const store of stores)
    for await (const rows of chunksOf<number>(db, await filesOf(db, store), distance)) {
      for (const [number, , , far] of rows) found.add(number, -far)
      await new Promise(setImmediate)
    }
  return found.numbers()
}
