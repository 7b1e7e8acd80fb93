import { registryMigrations } from '../../migrations'
import { config } from '../config'
import type { DatabaseLocation } from '../storage/port'
import { checkDatabase, databases, MAIN_CLUSTER } from './databases'

/** Where the registry is: a file, or a schema of PostgreSQL. */
export const registryLocation: DatabaseLocation = {
  tenant: 'registry',
  file: 'registry.db',
  identity: '',
  pinned: true,
  ...(config.ATOLL_DATABASE_URL && { cluster: MAIN_CLUSTER, bucket: 'atoll_registry' }),
}

/** The database of all tenants, their hosts and homes. It has the same engine as the tenants' databases. */
export const registry = databases.getStore(registryLocation, registryMigrations)

/** Reads the whole registry and returns what is wrong with it. */
export const checkRegistry = () => checkDatabase(registryLocation)
