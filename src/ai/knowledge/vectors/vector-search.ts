import type { Db, VectorSearch } from '../../../storage/port'
import type { StoreRow } from '../stores'
import { searchInJavascript } from './javascript'
import { searchWithSqliteVec } from './sqlite-vec'

/** Returns the numbers of the chunks whose vectors are closest to a vector (cosine), closest first. The search is exact. */
export type NearestSearch = (db: Db, stores: StoreRow[], queryVector: Float32Array, limit: number) => Promise<number[]>

const searchByEngine: Record<VectorSearch, NearestSearch> = {
  javascript: searchInJavascript,
  'sqlite-vec': searchWithSqliteVec,
}

/** Searches with what the database supports. */
export const findNearest: NearestSearch = (db, ...args) => searchByEngine[db.vectorSearch](db, ...args)
