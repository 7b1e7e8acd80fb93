import { Command } from 'commander'
import { config } from '../config'
import { createWithAdmin } from '../operations/tenant-administration'
import { adoptTenant } from '../tenancy/adoption'
import { moveTenant } from '../tenancy/move'
import * as tenants from '../tenancy/tenants'
import { requireConfirmation } from './confirmation'
import { invocation } from './invocation'
import { formatTable, runAndPrint } from './output'
import { readPassword } from './password'

const tenantCommand = (name: string, description: string) =>
  new Command(name).description(description).argument('<id>', 'the id of the tenant').option('--json', 'print JSON')

const parseHosts = (value: string, before: string[] = []) => [...before, ...value.split(',').filter(Boolean)]

type CreateOptions = {
  host?: string[]
  adminUsername?: string
  adminPassword?: string
  adminEmail?: string
  json?: boolean
}

const create = tenantCommand('create', 'Create a tenant, ready for sign-in')
  .option('--host <host>', 'a host that it answers at; may be repeated', parseHosts)
  .option('--admin-username <name>', 'the username of its first administrator')
  .option(
    '--admin-password <password>',
    'at least 8 characters; if omitted, it is prompted for or read from standard input',
  )
  .option('--admin-email <address>', 'the e-mail address of the administrator')
  .addHelpText(
    'after',
    `

Example:
  atoll tenant create acme --host acme.example.com --admin-username ada < password.txt`,
  )
  .action(
    runAndPrint(
      async (id: string, options: CreateOptions, command: Command) => {
        const { host = [], adminUsername: username, adminEmail: email } = options
        if (!username && (options.adminPassword || email))
          command.error('--admin-username is required with its password or e-mail address.')
        const password = username && (options.adminPassword ?? (await readPassword('--admin-password')))
        await createWithAdmin(
          id,
          host,
          username && password ? { username, password, ...(email && { email }) } : undefined,
        )
        await warnAboutSecondTenant(options)
        return tenants.getTenantInfo(id)
      },
      ({ id, hosts }, _id, { adminUsername }) =>
        [
          `Created the tenant "${id}"${hosts.length ? `, which answers at ${hosts.join(', ')}` : ''}.`,
          ...(adminUsername
            ? []
            : [
                `Nobody can sign in yet. Create its administrator: ${invocation} user create ${id} <username> --roles admin,user`,
              ]),
        ].join('\n'),
    ),
  )

/** Warns about the effect of a second tenant on requests without a known host. */
async function warnAboutSecondTenant({ json }: CreateOptions) {
  const all = await tenants.listTenants()
  if (json || config.ATOLL_DEFAULT_TENANT || all.length !== 2) return
  console.error(
    'With two tenants, requests whose host belongs to neither are refused. Set ATOLL_DEFAULT_TENANT to the tenant that should answer them.',
  )
}

const list = new Command('list')
  .description('List all tenants')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      (_options: object, _command: Command) => tenants.listTenants(),
      (all) =>
        all.length
          ? formatTable(all.map(({ id, status, created, hosts }) => [id, status, created, hosts.join(',')]))
          : 'No tenants.',
    ),
  )

const show = tenantCommand('show', 'Show a tenant').action(
  runAndPrint(
    (id: string, _options: object, _command: Command) => tenants.getTenantInfo(id),
    ({ id, status, created, hosts }) =>
      formatTable([
        ['id', id],
        ['status', status],
        ['created', created],
        ['hosts', hosts.join(', ')],
      ]),
  ),
)

const statusCommand = (name: string, to: 'active' | 'suspended', description: string) =>
  tenantCommand(name, description).action(
    runAndPrint(
      async (id: string, _options: object, _command: Command) => {
        await tenants.setStatus(id, to)
        return tenants.getTenantInfo(id)
      },
      ({ id, status }) => `The tenant "${id}" is ${status}.`,
    ),
  )

const remove = tenantCommand('delete', 'Delete a tenant; its files are moved to .trash')
  .option('--yes', 'do not ask for confirmation')
  .action(
    runAndPrint(
      async (id: string, options: { yes?: boolean }, command: Command) => {
        await tenants.getTenantInfo(id)
        requireConfirmation(command, `Delete the tenant "${id}"?`, options)
        return { id, trash: (await tenants.deleteTenant(id)) ?? null }
      },
      ({ id, trash }) => `Deleted the tenant "${id}".${trash ? ` Its files are in ${trash}.` : ''}`,
    ),
  )

const move = tenantCommand('move', 'Move a tenant to another database while it is served')
  .requiredOption('--to <home>', 'sqlite, postgres (the emptiest bucket), or <cluster>/<bucket>')
  .action(
    runAndPrint(
      (id: string, { to, json }: { to: string; json?: boolean }, _command: Command) =>
        moveTenant(id, to, (line) => json || console.error(line)),
      ({ id, from, to, rows, waited, ms, trash }) =>
        (from === to
          ? `The tenant "${id}" is already in ${to === 'sqlite' ? 'a file' : to}.`
          : `Moved the tenant "${id}" from ${from} to ${to}: ${rows} rows in ${ms} ms, for ${waited} of which writes waited.`) +
        (trash ? ` The files that it left are in ${trash}.` : ''),
    ),
  )

const hosts = tenantCommand('hosts', 'Show or replace the hosts of a tenant')
  .argument('[hosts...]', 'the new hosts; if omitted, the current ones are shown')
  .option('--clear', 'remove all hosts except those of its websites')
  .action(
    runAndPrint(
      async (id: string, names: string[], { clear }: { clear?: boolean }, _command: Command) => {
        if (names.length || clear)
          await tenants.setHosts(
            id,
            names.flatMap((name) => parseHosts(name)),
          )
        return tenants.getTenantInfo(id)
      },
      ({ hosts }) => hosts.join('\n') || 'No hosts.',
    ),
  )

const adopt = new Command('adopt')
  .description('Import the folder of a tenant that is not in the registry')
  .argument('<folder>', 'its folder, whose name becomes the id')
  .option('--host <host>', 'a host that it answers at; may be repeated', parseHosts)
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      (folder: string, { host }: { host?: string[] }, _command: Command) => adoptTenant(folder, host),
      ({ id }) => `Adopted the tenant "${id}".`,
    ),
  )

export const tenant = new Command('tenant')
  .description('Manage tenants')
  .addCommand(create)
  .addCommand(list)
  .addCommand(show)
  .addCommand(statusCommand('suspend', 'suspended', 'Suspend a tenant: all of its requests get 403'))
  .addCommand(statusCommand('resume', 'active', 'Resume a suspended tenant'))
  .addCommand(remove)
  .addCommand(move)
  .addCommand(adopt)
  .addCommand(hosts)
