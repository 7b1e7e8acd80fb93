import type { Migrations } from '../src/storage/port'
import tenantPg from './postgres/0001_schema.sql' with { type: 'text' }
import registryPg from './postgres/registry/0001_schema.sql' with { type: 'text' }
import tenant from './sqlite/0001_schema.sql' with { type: 'text' }
import registry from './sqlite/registry/0001_schema.sql' with { type: 'text' }

/** The schema of a tenant's database, in order. What a release had never changes: later releases add to these lists. */
export const tenantMigrations: Migrations = { sqlite: [tenant], postgres: [tenantPg] }

/** The schema of the registry of tenants. */
export const registryMigrations: Migrations = { sqlite: [registry], postgres: [registryPg] }
