import type { Db, VectorSearch } from '../../../storage/port'
import type { StoreRow } from '../stores'
import { searchInJavascript } from './javascript'
import { searchWithSqliteVec } from './sqlite-vec'

/** Numbers of the chunks of some stores whose vectors are closest to one (cosine), the closest first. Each is compared. */
export type NearestSearch = (db: Db, stores: StoreRow[], wanted: Float32Array, most: number) => Promise<number[]>

const searchByEngine: Record<VectorSearch, NearestSearch> = {
  javascript: searchInJavascript,
  'sqlite-vec': searchWithSqliteVec,
}

/** By what the database has for it. */
export const findNearest: NearestSearch = (db, ...args) => searchByEngine[db.vectorSearch](db, ...args)
