import { Command } from 'commander'
import { listTenants, migrateTenant } from '../tenancy/tenants'
import { runAndPrint } from './output'

/**
 * Tenants are migrated when they are opened. This command opens all of them, to find out before a release whether each
 * can be migrated.
 */
export const migrate = new Command('migrate')
  .description('Bring the database of every tenant up to date')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      async (_options: object, _command: Command) => {
        const results: { tenant: string; error?: string }[] = []
        for (const { id } of await listTenants())
          results.push(
            await migrateTenant(id).then(
              () => ({ tenant: id }),
              (error) => ({ tenant: id, error: String(error) }),
            ),
          )
        if (results.some(({ error }) => error)) process.exitCode = 1
        return results
      },
      (results) =>
        results.map(({ tenant, error }) => `${tenant}: ${error ?? 'up to date'}`).join('\n') || 'No tenants.',
    ),
  )
