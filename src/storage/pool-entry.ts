import type { GroupCommitWriter } from './group-commit'
import type { Database, DatabaseLocation, RunQuery } from './port'

/** An open database, its reads and its writer. */
export type OpenDatabase = {
  database: Database
  read: RunQuery
  readAtOnce?: NonNullable<Database['queryAtOnce']>
  writer: GroupCommitWriter
}
/** A database of a pool, which is open or being opened. */
export type PoolEntry = {
  key: string
  place: DatabaseLocation
  /** A pinned database does not count towards the limit, and is not closed to make room. */
  pinned: boolean
  /** Whether it takes one of the limited slots. */
  hasSlot: boolean
  ready: Promise<OpenDatabase>
  opened?: OpenDatabase
  users: number
  /** The sequence number of its last use. */
  lastUse: number
  /** The last use at the latest idle check, and when its memory was released. */
  useAtCheck?: number
  useAtRelease?: number
  /** Called when the last use has ended. */
  onIdle?: () => void
}

/** Tells whether a database needs a slot. Files need descriptors; data in PostgreSQL shares a few connections. */
export const needsSlot = ({ pinned, cluster }: DatabaseLocation) => !pinned && !cluster

/** Returns the key of a location within a pool. */
export const toPoolKey = ({ file, identity, cluster, bucket }: DatabaseLocation) =>
  `${file} ${identity} ${cluster} ${bucket}`
