import type { VectorSearch } from '../../../storage/port'
import { searchInJavascript } from './javascript'
import type { NearestSearch } from './nearest-search'
import { searchWithSqliteVec } from './sqlite-vec'

const searchByEngine: Record<VectorSearch, NearestSearch> = {
  javascript: searchInJavascript,
  'sqlite-vec': searchWithSqliteVec,
}

/** Searches with what the database supports. */
export const findNearest: NearestSearch = (db, ...args) => searchByEngine[db.vectorSearch](db, ...args)
