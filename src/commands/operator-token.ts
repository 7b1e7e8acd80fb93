import { Command } from 'commander'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { notFound } from '../core/problem'
import { OPERATOR_SCOPES, type OperatorScope } from '../operations/shapes'
import { requireConfirmation } from './confirmation'
import { findInstallation } from './installation'
import { formatTable, runAndPrint } from './output'

type CreateOptions = { scope: string[]; days?: string }

const collectScopes = (value: string, before: string[] = []) => [...before, ...value.split(',').filter(Boolean)]

const isScope = (name: string): name is OperatorScope => OPERATOR_SCOPES.includes(name as OperatorScope)

/** Returns the scopes of these names. @throws CommanderError for other names */
function parseScopes(command: Command, names: string[]): OperatorScope[] {
  const unknown = names.find((name) => !isScope(name))
  if (unknown !== undefined)
    command.error(`"${unknown}" is not a scope. Use one or more of these: ${OPERATOR_SCOPES.join(', ')}.`)
  return [...new Set(names.filter(isScope))]
}

/** Returns the time after so many days; null when none are given. @throws CommanderError for another text */
function parseExpiry(command: Command, days: string | undefined): string | null {
  if (days === undefined) return null
  if (!/^[1-9]\d{0,4}$/.test(days)) command.error(`--days takes a number of days such as 90, not "${days}".`)
  return toIsoString(now() + Number(days) * DAY_MS)
}

const create = new Command('create')
  .description('Create a token and print it once')
  .argument('<name>', 'what the token is for')
  .requiredOption(
    '--scope <scope>',
    `scopes, separated by commas; may be repeated: ${OPERATOR_SCOPES.join(', ')}`,
    collectScopes,
  )
  .option('--days <number>', 'days until the token expires (default: never)')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `

Example:
  atoll operator-token create nightly --scope read,backups --days 90`,
  )
  .action(
    runAndPrint(
      (name: string, { scope, days }: CreateOptions, command: Command) => {
        const expires = parseExpiry(command, days)
        return findInstallation(command).createToken({ name, scopes: parseScopes(command, scope), expires })
      },
      ({ name, scopes, token }) =>
        `Created the token "${name}" (${scopes.join(', ')}). Copy it now; it is not shown again:\n${token}`,
    ),
  )

const list = new Command('list')
  .description('List tokens with their scopes and last use')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      (_options: object, command: Command) => findInstallation(command).listTokens(),
      (tokens) =>
        tokens.length
          ? formatTable([
              ['name', 'scopes', 'created', 'last used', 'expires'],
              ...tokens.map(({ name, scopes, created, used, expires }) => [
                ...[name, scopes.join(','), created, used ?? 'never', expires ?? 'never'],
              ]),
            ])
          : 'No tokens.',
    ),
  )

const revoke = new Command('revoke')
  .description('Revoke a token immediately')
  .argument('<name>', 'token name')
  .option('--yes', 'skip the confirmation')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      async (name: string, options: { yes?: boolean }, command: Command) => {
        const installation = findInstallation(command)
        const tokens = await installation.listTokens()
        const token = tokens.find((one) => one.name === name) ?? notFound('operator token')
        requireConfirmation(command, `Revoke the token "${name}"?`, options)
        await installation.removeToken(token._id)
        return { _id: token._id, name }
      },
      ({ name }) => `Revoked the token "${name}".`,
    ),
  )

export const operatorToken = new Command('operator-token')
  .description('Manage operator tokens, which have narrower scopes than ATOLL_OPERATOR_TOKEN')
  .addCommand(create)
  .addCommand(list)
  .addCommand(revoke)
