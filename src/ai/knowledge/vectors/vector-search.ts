import type { VectorSearch } from '../../../storage/port'
import { searchInJavascript } from './javascript'
import type { NearestSearch } from './nearest-search'
import { searchWithSqliteVec } from './sqlite-vec'

const searchByEngine: Record<VectorSearch, NearestSearch> = {
  javascript: searchInJavascript,
  'sqlite-vec': searchWithSqliteVec,
}

/** By what the database has for it. */
export const findNearest: NearestSearch = (db, ...args) => searchByEngine[db.vectorSearch](db, ...args)
