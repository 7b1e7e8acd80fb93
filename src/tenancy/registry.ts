import { registryMigrations } from '../../migrations'
import { config } from '../config'
import { MAIN, storage } from './storage'

/** Which tenants there are, where they answer and where their data is: one more database of the same kind. */
export const registry = storage.store(
  {
    tenant: 'registry',
    file: 'registry.db',
    identity: '',
    ...(config.ATOLL_DATABASE_URL && { cluster: MAIN, bucket: 'atoll_registry' }),
  },
  registryMigrations,
)
