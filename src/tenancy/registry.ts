import { registryMigrations } from '../../migrations'
import { config } from '../config'
import type { DatabaseLocation } from '../storage/port'
import { checkDatabase, databases, MAIN_CLUSTER } from './databases'

const registryLocation: DatabaseLocation = {
  tenant: 'registry',
  file: 'registry.db',
  identity: '',
  pinned: true,
  ...(config.ATOLL_DATABASE_URL && { cluster: MAIN_CLUSTER, bucket: 'atoll_registry' }),
}

/** Which tenants there are, where they answer and where their data is: one more database of the same kind. */
export const registry = databases.getStore(registryLocation, registryMigrations)

/** Reads all of the registry, and tells what is wrong with it. */
export const checkRegistry = () => checkDatabase(registryLocation)
