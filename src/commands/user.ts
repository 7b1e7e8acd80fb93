import { Command } from 'commander'
import { Registration } from '../accounts/shapes'
import * as users from '../accounts/users'
import { fitting } from '../core/shapes'
import { tenantNamed } from '../tenancy/tenants'
import { answers } from './output'
import { readPassword } from './password'
import { requireKnownRoles } from './roles'

const named = (name: string, description: string) =>
  new Command(name)
    .description(description)
    .argument('<tenant>', 'the id of the tenant')
    .argument('<username>', 'the username or e-mail address')
    .option('--json', 'print JSON')

const roles = (value: string) => [
  ...new Set(
    value
      .split(',')
      .map((role) => role.trim())
      .filter(Boolean),
  ),
]

type Created = { password?: string; email?: string; roles: string[] }

const create = named('create', 'Create a user')
  .option('--password <password>', 'at least 8 characters; asked for, or read from standard input, when not given')
  .option('--email <address>', 'the e-mail address')
  .option('--roles <roles>', 'separated by commas', roles, ['user'])
  .action(
    answers(
      async (id: string, username: string, { password, email, roles }: Created, _command: Command) => {
        const input = fitting(Registration, {
          username,
          password: password ?? (await readPassword('--password')),
          ...(email && { email }),
        })
        const tenant = await tenantNamed(id)
        await requireKnownRoles(tenant, roles)
        return users.shown(await users.register(tenant, input, roles), true)
      },
      ({ username, roles }) => `Created the user "${username}" with the roles ${roles.join(', ')}.`,
    ),
  )

const password = named('password', "Set a user's password and end their sessions")
  .option('--password <password>', 'at least 8 characters; asked for, or read from standard input, when not given')
  .action(
    answers(
      async (id: string, username: string, { password }: { password?: string }, _command: Command) => {
        await users.setPassword(await tenantNamed(id), username, password ?? (await readPassword('--password')))
        return { username }
      },
      ({ username }) => `The password of "${username}" is set, and their sessions have ended.`,
    ),
  )

const setRoles = named('roles', "Replace a user's roles")
  .argument('<roles>', 'separated by commas', roles)
  .action(
    answers(
      async (id: string, username: string, roles: string[], _options: object, _command: Command) => {
        const tenant = await tenantNamed(id)
        await requireKnownRoles(tenant, roles)
        return users.shown(await users.setRoles(tenant, username, roles), true)
      },
      ({ username, roles }) => `"${username}" has the roles ${roles.join(', ') || '(none)'}.`,
    ),
  )

export const user = new Command('user')
  .description('Manage users')
  .addCommand(create)
  .addCommand(password)
  .addCommand(setRoles)
