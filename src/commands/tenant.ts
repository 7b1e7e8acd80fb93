import { Command } from 'commander'
import { parseSize } from '../core/byte-size'
import { QUOTA_KINDS, type QuotaChange, type QuotaKind } from '../limits/shapes'
import { adoptTenant } from '../tenancy/adoption'
import { describeDefaultTenant } from '../tenancy/default-tenant'
import { requireConfirmation } from './confirmation'
import { findInstallation } from './installation'
import type { Installation } from './installation/installation'
import { invocation } from './invocation'
import { collectValues } from './option-values'
import { describeMissingFiles, formatTable, pluralize, runAndPrint } from './output'
import { readPassword } from './password'
import { showProgress } from './progress'
import { tenantDefault } from './tenant-default'

const tenantCommand = (name: string, description: string) =>
  new Command(name).description(description).argument('<id>', 'tenant ID').option('--json', 'print JSON')

const parseHosts = (value: string, before: string[] = []) => [...before, ...value.split(',').filter(Boolean)]

type CreateOptions = {
  host?: string[]
  name?: string
  adminUsername?: string
  adminPassword?: string
  adminEmail?: string
  json?: boolean
}

const create = tenantCommand('create', 'Create a tenant')
  .option('--host <host>', 'host of the tenant; may be repeated', parseHosts)
  .option('--name <name>', 'product name, shown in mails and pages')
  .option('--admin-username <name>', 'username of the first administrator')
  .option('--admin-password <password>', 'at least 8 characters; if omitted, prompted for or read from standard input')
  .option('--admin-email <address>', 'e-mail address of the administrator')
  .addHelpText(
    'after',
    `

Example:
  atoll tenant create acme --name "Paper Boats" --host acme.example.com --admin-username ada < password.txt`,
  )
  .action(
    runAndPrint(
      async (id: string, options: CreateOptions, command: Command) => {
        const { host = [], name, adminUsername: username, adminEmail: email } = options
        if (!username && (options.adminPassword || email))
          command.error('--admin-password and --admin-email require --admin-username.')
        const password = username && (options.adminPassword ?? (await readPassword('--admin-password')))
        const admin = username && password ? { username, password, ...(email && { email }) } : undefined
        const installation = findInstallation(command)
        const created = await installation.createTenant({
          id,
          hosts: host,
          ...(name && { name }),
          ...(admin && { admin }),
        })
        await announceDefaultTenant(installation, options)
        return created
      },
      ({ id, hosts }, _id, { adminUsername }) =>
        [
          `Created the tenant "${id}"${hosts.length ? ` at ${hosts.join(', ')}` : ''}.`,
          ...(adminUsername
            ? []
            : [
                `The tenant has no administrator yet. Create one: ${invocation} user create ${id} <username> --roles admin,user`,
              ]),
        ].join('\n'),
    ),
  )

/** Says who goes on answering where no host names a tenant, when there is a choice for the first time. */
async function announceDefaultTenant(installation: Installation, { json }: CreateOptions) {
  if (json || (await installation.listTenants()).filter(({ outgoingHeld }) => !outgoingHeld).length !== 2) return
  console.error(
    `${describeDefaultTenant(await installation.getDefaultTenant())} To change it, run: ${invocation} tenant default`,
  )
}

const describeStatus = ({ status, outgoingHeld }: { status: string; outgoingHeld?: string }) =>
  outgoingHeld ? `${status}, outgoing held` : status

const list = new Command('list')
  .description('List all tenants')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      (_options: object, command: Command) => findInstallation(command).listTenants(),
      (all) =>
        all.length
          ? formatTable(
              all.map((tenant) => [tenant.id, describeStatus(tenant), tenant.created, tenant.hosts.join(',')]),
            )
          : 'No tenants.',
    ),
  )

const show = tenantCommand('show', 'Show a tenant').action(
  runAndPrint(
    (id: string, _options: object, command: Command) => findInstallation(command).getTenant(id),
    ({ id, status, outgoingHeld, created, hosts }) =>
      formatTable([
        ['id', id],
        ['status', describeStatus({ status, outgoingHeld })],
        ['created', created],
        ['hosts', hosts.join(', ')],
      ]),
  ),
)

const suspend = tenantCommand('suspend', 'Suspend a tenant (all requests get 403)').action(
  runAndPrint(
    (id: string, _options: object, command: Command) => findInstallation(command).setStatus(id, 'suspended'),
    ({ id, status }) => `The tenant "${id}" is ${status}.`,
  ),
)

const resume = tenantCommand('resume', 'Resume a suspended tenant')
  .option('--outgoing', 'allow outgoing calls from a copy: mail, deliveries, integrations, payments')
  .action(
    runAndPrint(
      (id: string, options: { outgoing?: boolean }, command: Command) =>
        findInstallation(command).setStatus(id, 'active', { outgoing: options.outgoing }),
      (tenant) => `The tenant "${tenant.id}" is ${describeStatus(tenant)}.`,
    ),
  )

const remove = tenantCommand('delete', 'Delete a tenant (files are moved to .trash)')
  .option('--yes', 'skip the confirmation')
  .action(
    runAndPrint(
      async (id: string, options: { yes?: boolean }, command: Command) => {
        const installation = findInstallation(command)
        await installation.getTenant(id)
        requireConfirmation(command, `Delete the tenant "${id}"?`, options)
        return { id, trash: await installation.deleteTenant(id) }
      },
      ({ id, trash }) => `Deleted the tenant "${id}".${trash ? ` Its files are in ${trash}.` : ''}`,
    ),
  )

const move = tenantCommand('move', 'Move a tenant to another database without downtime')
  .requiredOption('--to <home>', 'sqlite, postgres (the emptiest bucket), or <cluster>/<bucket>')
  .action(
    runAndPrint(
      (id: string, { to, json }: { to: string; json?: boolean }, command: Command) =>
        findInstallation(command).moveTenant(id, to, (line) => json || console.error(line)),
      ({ id, from, to, rows, waited, ms, trash }) =>
        (from === to
          ? `The tenant "${id}" is already in ${to === 'sqlite' ? 'a file' : to}.`
          : `Moved the tenant "${id}" from ${from} to ${to}: ${rows} rows in ${ms} ms (writes paused for ${waited} ms).`) +
        (trash ? ` Its old files are in ${trash}.` : ''),
    ),
  )

const clone = tenantCommand('clone', 'Copy a tenant without hosts, sessions and tokens')
  .argument('<as>', 'ID of the new tenant')
  .option('--without-secrets', 'omit all encrypted data')
  .action(
    runAndPrint(
      async (id: string, as: string, { withoutSecrets }: { withoutSecrets?: boolean }, command: Command) => {
        using progress = showProgress()
        const options = withoutSecrets ? { withoutSecrets } : {}
        return await findInstallation(command).cloneTenant(id, as, options, progress.update)
      },
      ({ tenant, from, files, lostSecrets, omittedSecrets, ms }) =>
        `Copied the tenant "${from}" to "${tenant}" in ${ms} ms.` +
        describeMissingFiles(files) +
        (lostSecrets ? ` ${pluralize(lostSecrets, 'secret')} could not be copied; enter them again.` : '') +
        (omittedSecrets.length ? ` Omitted secrets: ${omittedSecrets.join(', ')}.` : '') +
        ` The copy makes no outgoing calls until you run: ${invocation} tenant resume ${tenant} --outgoing`,
    ),
  )

const hosts = tenantCommand('hosts', 'Show or replace the hosts of a tenant')
  .argument('[hosts...]', 'new hosts; if omitted, shows the current hosts')
  .option('--clear', 'remove all hosts except website hosts')
  .action(
    runAndPrint(
      (id: string, names: string[], { clear }: { clear?: boolean }, command: Command) => {
        const installation = findInstallation(command)
        const hosts = names.flatMap((name) => parseHosts(name))
        return names.length || clear ? installation.setHosts(id, hosts) : installation.getTenant(id)
      },
      ({ hosts }) => hosts.join('\n') || 'No hosts.',
    ),
  )

/** Returns the change of a quota that a text such as `storage=2G` describes; without a number it removes the quota. */
function parseQuota(command: Command, text: string): QuotaChange {
  const [, name, value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  const kind = QUOTA_KINDS.find((kind) => kind === name)
  const amount = kind && parseAmount(kind, value)
  if (kind && amount !== undefined) return { [kind]: amount }
  return command.error(
    `"${text}" is not a valid quota. Use <kind>=<number> with one of these kinds: ${QUOTA_KINDS.join(', ')}.`,
  )
}

function parseAmount(kind: QuotaKind, text: string): number | null | undefined {
  if (!text) return null
  if (!/^\d/.test(text)) return
  return kind === 'storage' ? parseSize(text) : /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

const quotas = tenantCommand('quotas', "Show or change a tenant's quotas and usage")
  .option(
    '--set <kind=number>',
    `kind: ${QUOTA_KINDS.join(', ')}; storage in bytes, or with K, M, G or T; omit the number to remove the quota; may be repeated`,
    collectValues,
  )
  .addHelpText(
    'after',
    `

Example:
  atoll tenant quotas acme --set entities=100000 --set storage=2G --set mails=`,
  )
  .action(
    runAndPrint(
      async (id: string, { set = [] }: { set?: string[] }, command: Command) => {
        const change = Object.assign({}, ...set.map((text) => parseQuota(command, text)))
        const installation = findInstallation(command)
        return set.length ? installation.setQuotas(id, change) : installation.getQuotas(id)
      },
      ({ usage, ...limits }) =>
        formatTable([
          ['', 'used', 'quota'],
          ...QUOTA_KINDS.map((kind) => [kind, `${usage[kind] ?? 'unknown'}`, `${limits[kind] ?? 'none'}`]),
        ]),
    ),
  )

const adopt = new Command('adopt')
  .description('Import a tenant folder that is not in the registry')
  .argument('<folder>', 'tenant folder; its name becomes the tenant ID')
  .option('--host <host>', 'host of the tenant; may be repeated', parseHosts)
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
  .addCommand(suspend)
  .addCommand(resume)
  .addCommand(remove)
  .addCommand(move)
  .addCommand(clone)
  .addCommand(adopt)
  .addCommand(hosts)
  .addCommand(tenantDefault)
  .addCommand(quotas)
