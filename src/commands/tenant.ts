import { Command } from 'commander'
import { Registration } from '../accounts/shapes'
import { register } from '../accounts/users'
import { fitting } from '../core/shapes'
import { moveTenant } from '../tenancy/moves'
import * as tenants from '../tenancy/tenants'
import { answers, table } from './output'

const named = (name: string, description: string) =>
  new Command(name).description(description).argument('<id>', 'the id of the tenant').option('--json', 'answer in JSON')

const many = (value: string, before: string[] = []) => [...before, ...value.split(',').filter(Boolean)]

type Created = { host?: string[]; adminUsername?: string; adminPassword?: string; adminEmail?: string }

const create = named('create', 'make a tenant, ready for sign-in')
  .option('--host <host>', 'a host at which it answers; may be repeated', many)
  .option('--admin-username <name>', 'its first administrator')
  .option('--admin-password <password>', 'the password, at least 8 characters')
  .option('--admin-email <address>', 'the e-mail address')
  .action(
    answers(
      async (id: string, options: Created, command: Command) => {
        const { host = [], adminUsername: username, adminPassword: password, adminEmail: email } = options
        if (!username !== !password) command.error('Give both --admin-username and --admin-password, or neither.')
        const admin = username && fitting(Registration, { username, password, ...(email && { email }) })
        const tenant = await tenants.createTenant(id, host)
        if (admin) {
          // A tenant without the administrator that was asked for would be in the way of the next attempt.
          await register(tenant, admin, ['admin', 'user'], undefined, { emailVerified: !!email }).catch(
            async (error) => {
              await tenants.deleteTenant(id)
              throw error
            },
          )
        }
        return tenants.showTenant(id)
      },
      ({ id, hosts }) => `Created the tenant "${id}"${hosts.length ? `, which answers at ${hosts.join(', ')}` : ''}.`,
    ),
  )

const list = new Command('list')
  .description('show all tenants')
  .option('--json', 'answer in JSON')
  .action(
    answers(
      (_options: object, _command: Command) => tenants.listTenants(),
      (all) =>
        all.length
          ? table(all.map(({ id, status, created, hosts }) => [id, status, created, hosts.join(',')]))
          : 'No tenants.',
    ),
  )

const show = named('show', 'show one tenant').action(
  answers(
    (id: string, _options: object, _command: Command) => tenants.showTenant(id),
    ({ id, status, created, hosts }) =>
      table([
        ['id', id],
        ['status', status],
        ['created', created],
        ['hosts', hosts.join(', ')],
      ]),
  ),
)

const status = (name: string, to: 'active' | 'suspended', description: string) =>
  named(name, description).action(
    answers(
      async (id: string, _options: object, _command: Command) => {
        await tenants.setStatus(id, to)
        return tenants.showTenant(id)
      },
      ({ id, status }) => `The tenant "${id}" is ${status}.`,
    ),
  )

const remove = named('delete', 'end a tenant; its files are moved to .trash').action(
  answers(
    async (id: string, _options: object, _command: Command) => ({
      id,
      trash: (await tenants.deleteTenant(id)) ?? null,
    }),
    ({ id, trash }) => `Deleted the tenant "${id}".${trash ? ` Its files are in ${trash}.` : ''}`,
  ),
)

const move = named('move', 'move a tenant to another database while it is served')
  .requiredOption('--to <home>', 'sqlite, postgres (the emptiest bucket), or <cluster>/<bucket>')
  .action(
    answers(
      (id: string, { to, json }: { to: string; json?: boolean }, _command: Command) =>
        moveTenant(id, to, (line) => json || console.error(line)),
      ({ id, from, to, rows, waited, ms, trash }) =>
        (from === to
          ? `The tenant "${id}" is in ${to} already.`
          : `Moved the tenant "${id}" from ${from} to ${to}: ${rows} rows in ${ms} ms, for ${waited} of which writes waited.`) +
        (trash ? ` The files that it left are in ${trash}.` : ''),
    ),
  )

const hosts = named('hosts', 'show the hosts at which a tenant answers, or replace those that it was given')
  .argument('[hosts...]', 'the new hosts; none shows them')
  .option('--clear', 'leave it only those of its websites')
  .action(
    answers(
      async (id: string, names: string[], { clear }: { clear?: boolean }, _command: Command) => {
        if (names.length || clear)
          await tenants.setHosts(
            id,
            names.flatMap((name) => many(name)),
          )
        return tenants.showTenant(id)
      },
      ({ hosts }) => hosts.join('\n') || 'No hosts.',
    ),
  )

export const tenant = new Command('tenant')
  .description('make, show, suspend and delete tenants')
  .addCommand(create)
  .addCommand(list)
  .addCommand(show)
  .addCommand(status('suspend', 'suspended', 'answer 403 to everybody'))
  .addCommand(status('resume', 'active', 'end a suspension'))
  .addCommand(remove)
  .addCommand(move)
  .addCommand(hosts)
