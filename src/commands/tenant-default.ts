import { Command } from 'commander'
import { type DefaultTenantChoice, describeDefaultTenant } from '../tenancy/default-tenant'
import { findInstallation } from './installation'
import { runAndPrint } from './output'

type Options = { none?: boolean; local?: boolean }

/** Shows or changes which tenant answers where neither a header nor a host names one. */
export const tenantDefault = new Command('default')
  .description('Show or set the default tenant, which serves unknown hosts')
  .argument('[id]', 'tenant ID; with --local, the default for localhost and IP addresses only')
  .option('--none', 'no default tenant')
  .option('--local', 'for localhost and IP addresses only; without an ID, the first tenant (the default)')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      async (id: string | undefined, options: Options, command: Command) => {
        const installation = findInstallation(command)
        const choice = toChoice(id, options, command)
        const chosen = choice ? await installation.chooseDefaultTenant(choice) : await installation.getDefaultTenant()
        if (choice && chosen.source === 'setting') console.error('ATOLL_DEFAULT_TENANT is set and takes precedence.')
        return chosen
      },
      (chosen) => describeDefaultTenant(chosen),
    ),
  )

function toChoice(tenant: string | undefined, { none, local }: Options, command: Command) {
  if (none && (tenant || local)) command.error('--none cannot be combined with a tenant or --local.')
  if (none) return { mode: 'none' } satisfies DefaultTenantChoice
  if (local) return { mode: 'local', tenant } satisfies DefaultTenantChoice
  if (tenant) return { mode: 'everywhere', tenant } satisfies DefaultTenantChoice
}
