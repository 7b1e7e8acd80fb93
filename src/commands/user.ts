import { Command } from 'commander'
import { Registration } from '../accounts/shapes'
import * as users from '../accounts/users/users'
import { parseWithShape } from '../core/shapes'
import { getTenant } from '../tenancy/tenants'
import { runAndPrint } from './output'
import { readPassword } from './password'
import { requireKnownRoles } from './roles'

const userCommand = (name: string, description: string) =>
  new Command(name)
    .description(description)
    .argument('<tenant>', 'tenant ID')
    .argument('<username>', 'username or e-mail address')
    .option('--json', 'print JSON')

const parseRoles = (value: string) => [
  ...new Set(
    value
      .split(',')
      .map((role) => role.trim())
      .filter(Boolean),
  ),
]

type CreateOptions = { password?: string; email?: string; roles: string[] }

const create = userCommand('create', 'Create a user')
  .option('--password <password>', 'at least 8 characters; if omitted, prompted for or read from standard input')
  .option('--email <address>', 'e-mail address')
  .option('--roles <roles>', 'roles, separated by commas', parseRoles, ['user'])
  .action(
    runAndPrint(
      async (id: string, username: string, { password, email, roles }: CreateOptions, _command: Command) => {
        const input = parseWithShape(Registration, {
          username,
          password: password ?? (await readPassword('--password')),
          ...(email && { email }),
        })
        const tenant = await getTenant(id)
        await requireKnownRoles(tenant, roles)
        // The operator vouches for the address.
        const emailState = { emailVerified: !!email }
        return users.toUser(await users.registerUncountedUser(tenant, input, roles, undefined, emailState), true)
      },
      ({ username, roles }) => `Created the user "${username}" with the roles ${roles.join(', ')}.`,
    ),
  )

const password = userCommand('password', "Set a user's password and end their sessions")
  .option('--password <password>', 'at least 8 characters; if omitted, prompted for or read from standard input')
  .action(
    runAndPrint(
      async (id: string, username: string, { password }: { password?: string }, _command: Command) => {
        await users.setPassword(await getTenant(id), username, password ?? (await readPassword('--password')))
        return { username }
      },
      ({ username }) => `Set the password of "${username}" and ended their sessions.`,
    ),
  )

const setRoles = userCommand('roles', "Replace a user's roles")
  .argument('<roles>', 'roles, separated by commas', parseRoles)
  .action(
    runAndPrint(
      async (id: string, username: string, roles: string[], _options: object, _command: Command) => {
        const tenant = await getTenant(id)
        await requireKnownRoles(tenant, roles)
        return users.toUser(await users.setRoles(tenant, username, roles), true)
      },
      ({ username, roles }) => `Roles of "${username}": ${roles.join(', ') || 'none'}.`,
    ),
  )

export const user = new Command('user')
  .description('Manage users')
  .addCommand(create)
  .addCommand(password)
  .addCommand(setRoles)
