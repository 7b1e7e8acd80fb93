import type { Db } from '../../../storage/port'
import type { StoreRow } from '../stores'

/** Numbers of the chunks of some stores whose vectors are closest to one (cosine), the closest first. Each is compared. */
export type NearestSearch = (db: Db, stores: StoreRow[], wanted: Float32Array, most: number) => Promise<number[]>
