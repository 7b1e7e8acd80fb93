import { registryMigrations } from '../../migrations'
import { config } from '../config'
import type { Place } from '../storage/port'
import { checkDatabase, MAIN, storage } from './storage'

const place: Place = {
  tenant: 'registry',
  file: 'registry.db',
  identity: '',
  pinned: true,
  ...(config.ATOLL_DATABASE_URL && { cluster: MAIN, bucket: 'atoll_registry' }),
}

/** Which tenants there are, where they answer and where their data is: one more database of the same kind. */
export const registry = storage.store(place, registryMigrations)

/** Reads all of the registry, and tells what is wrong with it. */
export const checkRegistry = () => checkDatabase(place)
