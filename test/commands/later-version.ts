// Atoll as a later version that has one more migration of each kind of database.
import { registryMigrations, tenantMigrations } from '../../migrations'

for (const { sqlite } of [tenantMigrations, registryMigrations]) sqlite.push('create table tomorrow (x integer) strict')
await import('../../src/main')
