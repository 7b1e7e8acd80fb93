import { Command } from 'commander'
import { Registration } from '../accounts/shapes'
import * as users from '../accounts/users'
import { invalid } from '../core/problem'
import { fitting } from '../core/shapes'
import { tenantNamed } from '../tenancy/tenants'
import { answers } from './output'

const named = (name: string, description: string) =>
  new Command(name)
    .description(description)
    .argument('<tenant>', 'the id of the tenant')
    .argument('<username>', 'the username or e-mail address')
    .option('--json', 'answer in JSON')

const roles = (value: string) => [
  ...new Set(
    value
      .split(',')
      .map((role) => role.trim())
      .filter(Boolean),
  ),
]

type Created = { password?: string; email?: string; roles: string[] }

const create = named('create', 'make a user')
  .option('--password <password>', 'at least 8 characters; read from standard input when not given')
  .option('--email <address>', 'the e-mail address')
  .option('--roles <roles>', 'comma-separated', roles, ['user'])
  .action(
    answers(
      async (id: string, username: string, { password, email, roles }: Created, _command: Command) => {
        const input = fitting(Registration, {
          username,
          password: password ?? (await typed()),
          ...(email && { email }),
        })
        // Who runs the installation answers for the address.
        const given = { emailVerified: !!email }
        return users.shown(await users.register(await tenantNamed(id), input, roles, undefined, given), true)
      },
      ({ username, roles }) => `Created the user "${username}" with the roles ${roles.join(', ')}.`,
    ),
  )

const password = named('password', "set a user's password; their sessions end")
  .option('--password <password>', 'at least 8 characters; read from standard input when not given')
  .action(
    answers(
      async (id: string, username: string, { password }: { password?: string }, _command: Command) => {
        await users.setPassword(await tenantNamed(id), username, password ?? (await typed()))
        return { username }
      },
      ({ username }) => `The password of "${username}" is set, and their sessions have ended.`,
    ),
  )

const setRoles = named('roles', "replace a user's roles")
  .argument('<roles>', 'comma-separated', roles)
  .action(
    answers(
      async (id: string, username: string, roles: string[], _options: object, _command: Command) =>
        users.shown(await users.setRoles(await tenantNamed(id), username, roles), true),
      ({ username, roles }) => `"${username}" has the roles ${roles.join(', ') || '(none)'}.`,
    ),
  )

async function typed(): Promise<string> {
  if (process.stdin.isTTY) return prompt('Password:') ?? ''
  const [line = ''] = (await Bun.stdin.text()).split('\n')
  return line || invalid({ path: '--password', message: 'Give --password, or write it to standard input.' })
}

export const user = new Command('user')
  .description('make users, set passwords and roles')
  .addCommand(create)
  .addCommand(password)
  .addCommand(setRoles)
