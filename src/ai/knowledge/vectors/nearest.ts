import type { Comparing, Db } from '../../../storage/port'
import type { StoreRow } from '../stores'
import { javascript } from './javascript'
import { sqliteVec } from './sqlite-vec'

/** Numbers of the chunks of some stores whose vectors are closest to one (cosine), the closest first. Each is compared. */
export type Search = (db: Db, stores: StoreRow[], wanted: Float32Array, most: number) => Promise<number[]>

const searches: Record<Comparing, Search> = { javascript, 'sqlite-vec': sqliteVec }

/** By what the database has for it. */
export const nearest: Search = (db, ...asked) => searches[db.comparing](db, ...asked)
