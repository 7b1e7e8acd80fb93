import { Command } from 'commander'
import { type DefaultTenantChoice, describeDefaultTenant } from '../tenancy/default-tenant'
import { findInstallation } from './installation'
import { runAndPrint } from './output'

type Options = { none?: boolean; local?: boolean }

/** Shows or changes which tenant answers where neither a header nor a host names one. */
export const tenantDefault = new Command('default')
  .description('Show or choose the tenant that answers where no host names one')
  .argument('[id]', 'the tenant that answers at every unknown host; with --local, at localhost and IP addresses only')
  .option('--none', 'no tenant answers there')
  .option('--local', 'without an id, the first tenant answers at localhost and IP addresses (the default)')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      async (id: string | undefined, options: Options, command: Command) => {
        const installation = findInstallation(command)
        const choice = toChoice(id, options, command)
        const chosen = choice ? await installation.chooseDefaultTenant(choice) : await installation.getDefaultTenant()
        if (choice && chosen.source === 'setting') console.error('ATOLL_DEFAULT_TENANT is set, and prevails.')
        return chosen
      },
      (chosen) => describeDefaultTenant(chosen),
    ),
  )

function toChoice(tenant: string | undefined, { none, local }: Options, command: Command) {
  if (none && (tenant || local)) command.error('--none takes neither a tenant nor --local.')
  if (none) return { mode: 'none' } satisfies DefaultTenantChoice
  if (local) return { mode: 'local', tenant } satisfies DefaultTenantChoice
  if (tenant) return { mode: 'everywhere', tenant } satisfies DefaultTenantChoice
}
