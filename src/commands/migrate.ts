import { Command } from 'commander'
import { runAndPrint } from './output'
import { formatMigrations, migrateAll } from './upgrade'

/** Brings the databases of all tenants up to date. */
export const migrate = new Command('migrate')
  .description('Bring the database of every tenant up to date, as upgrade does')
  .option('--json', 'print JSON')
  .action(runAndPrint((_options: object, _command: Command) => migrateAll(), formatMigrations))
