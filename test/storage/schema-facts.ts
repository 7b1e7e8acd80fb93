import { Glob } from 'bun'
import { getTableName, is } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { registryMigrations, tenantMigrations } from '../../migrations'
import { leases } from '../../src/jobs/tables'
import type { Migrations } from '../../src/storage/port'

async function importTables(pattern: string) {
  const tables: SQLiteTable[] = []
  for (const file of new Glob(pattern).scanSync('src'))
    tables.push(...Object.values(await import(`../../src/${file}`)).filter((value) => is(value, SQLiteTable)))
  return tables
}
// The tables of tenancy belong to the registry, which has leases as tenants do; each tenant has `versions`, too.
const registryTables = [...(await importTables('tenancy/tables.ts')), leases]
/** The tables of a tenant. */
export const tenantTables = [
  ...(await importTables('!(tenancy)/**/tables.ts')),
  ...registryTables.filter((one) => getTableName(one) === 'versions'),
]

const describeKey = (kind: string, of: { name: string }[]) => `${kind} (${of.map(({ name }) => name).join(', ')})`

/** Columns, keys, references and indexes of the tables in the code, as texts that can be compared with a database. */
export const describeTables = (tables: SQLiteTable[]) =>
  tables
    .map(getTableConfig)
    .flatMap((table) =>
      [
        ...table.columns.map((one) => `${one.name} ${one.getSQLType()}${one.notNull ? ' not null' : ''}`),
        ...table.columns.filter((one) => one.primary).map((one) => describeKey('primary key', [one])),
        ...table.primaryKeys.map((one) => describeKey('primary key', one.columns)),
        ...table.columns.filter((one) => one.isUnique).map((one) => describeKey('unique', [one])),
        ...table.uniqueConstraints.map((one) => describeKey('unique', one.columns)),
        ...table.indexes.map(({ config: { name, unique, columns } }) =>
          describeKey(`${unique ? 'unique ' : ''}index ${name}`, columns as { name: string }[]),
        ),
        ...table.foreignKeys.map((one) => {
          const { columns, foreignTable, foreignColumns } = one.reference()
          const to = `${getTableName(foreignTable)} (${foreignColumns.map(({ name }) => name).join(', ')})`
          return `${describeKey('foreign key', columns)} -> ${to} on delete ${one.onDelete ?? 'no action'}`
        }),
      ].map((fact) => `${table.name}: ${fact}`),
    )
    .sort()

/** The tables of each kind of database and the migrations that create them. */
export const schemaCases: [string, SQLiteTable[], Migrations][] = [
  ['tenant', tenantTables, tenantMigrations],
  ['registry', registryTables, registryMigrations],
]
