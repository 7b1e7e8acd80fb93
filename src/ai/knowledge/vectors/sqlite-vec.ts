import { toVectorBytes } from '../embeddings'
import type { NearestSearch } from './nearest-search'
import { TopK } from './top-k'
import { listReadyFiles, readVectorChunks } from './vector-cache'

const CHUNKS_PER_QUERY = 500 // chunks, after which other work gets a turn

/** Has the database compare the vectors, so that none is kept in memory. */
export const searchWithSqliteVec: NearestSearch = async (db, stores, queryVector, limit) => {
  const topK = new TopK(limit)
  const distance = {
    sql: 'vec_distance_cosine(vector, ?)',
    params: [toVectorBytes(queryVector)],
    batchSize: CHUNKS_PER_QUERY,
  }
  for (const store of stores)
    for await (const rows of readVectorChunks<number>(db, await listReadyFiles(db, store), distance)) {
      for (const [number, , , cosineDistance] of rows) topK.add(number, -cosineDistance)
    }
  return topK.numbers()
}
