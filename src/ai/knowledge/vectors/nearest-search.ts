import type { Db } from '../../../storage/port'
import type { StoreRow } from '../stores'

/** Returns the numbers of the chunks whose vectors are closest to a vector (cosine), closest first. The search is exact. */
export type NearestSearch = (db: Db, stores: StoreRow[], queryVector: Float32Array, limit: number) => Promise<number[]>
