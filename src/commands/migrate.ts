import { Command } from 'commander'
import { runAndPrint } from './output'
import { formatMigrations, migrateAll } from './upgrade'

/** Brings the databases of all tenants up to date. */
export const migrate = new Command('migrate')
  .description('Alias of upgrade')
  .option('--json', 'print JSON')
  .action(runAndPrint((_options: object, _command: Command) => migrateAll(), formatMigrations))
