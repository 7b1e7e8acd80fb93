import { Command, CommanderError } from 'commander'
import { version } from '../../package.json'
import { config, logFormat } from '../config'
import { enableJit } from '../core/jit-policy'
import { formatLogAs, setLogLevel } from '../core/log'
import { describeTimeZones } from '../core/time-zone'
import { backup } from './backup'
import { completion } from './completion'
import { diff, pull, push } from './definitions'
import { dev } from './dev'
import { doctor } from './doctor'
import { exportCommand, importCommand } from './export'
import { explainFailure, printFailure } from './failure'
import { migrate } from './migrate'
import { openapi } from './openapi'
import { operatorToken } from './operator-token'
import { postgres } from './postgres'
import { restore } from './restore'
import { serve } from './serve'
import { site } from './site'
import { tenant } from './tenant'
import { types } from './types'
import { upgrade } from './upgrade'
import { user } from './user'
import { vault } from './vault'

const HELP_EXAMPLES = `
Examples:
  atoll tenant create acme --host acme.example.com --admin-username ada
  atoll serve
  atoll doctor

Exit codes: 0 done, 1 refused or failed, 2 wrong usage or settings.`

/** Returns the command line with all commands. */
export function createProgram() {
  const program = new Command('atoll')
    .description('Self-hosted, multi-tenant application platform.')
    .version(version, '-V, --version')
    .option(
      '--url <url>',
      'manage tenants, backups, operator tokens, definitions, types and sites on this server instead of the local data (default: ATOLL_URL)',
    )
    .option(
      '--token <token>',
      "that server's operator token, or an API token for definitions, types and sites (default: ATOLL_TOKEN)",
    )
    .hook('preAction', requireRemoteCommand)
    .hook('preAction', (_, command) => {
      if (command !== serve && command !== dev) enableJit()
    })
    .addHelpText('after', HELP_EXAMPLES)
    .addCommand(serve)
    .addCommand(tenant)
    .addCommand(user)
    .addCommand(operatorToken)
    .addCommand(backup)
    .addCommand(restore)
    .addCommand(exportCommand)
    .addCommand(importCommand)
    .addCommand(migrate)
    .addCommand(upgrade)
    .addCommand(vault)
    .addCommand(postgres)
    .addCommand(types)
    .addCommand(pull)
    .addCommand(diff)
    .addCommand(push)
    .addCommand(dev)
    .addCommand(site)
    .addCommand(openapi)
    .addCommand(doctor)
    .addCommand(completion)
    .addCommand(
      new Command('version')
        .description('Print the version')
        .option('--json', 'print JSON')
        .action(({ json }) =>
          console.log(json ? JSON.stringify({ version, bun: Bun.version, timeZones: describeTimeZones() }) : version),
        ),
    )
    .helpCommand(false)
  const help = new Command('help')
    .description('Show help for a command')
    .argument('[command...]', 'a command, such as tenant create')
    .action((names: string[]) => findCommand(program, names).help())
  return program.addCommand(help)
}

const REMOTE_COMMANDS = ['tenant', 'backup', 'restore', 'operator-token', 'pull', 'diff', 'push', 'site', 'types']

/** Refuses `--url` for commands that work on data only. */
function requireRemoteCommand(program: Command, command: Command) {
  if (!program.opts().url) return
  let top = command
  while (top.parent && top.parent !== program) top = top.parent
  if (REMOTE_COMMANDS.includes(top.name()) && command.name() !== 'adopt') return
  command.error(`"${command.name()}" works on local data only. Run it on the server, without --url.`)
}

/** Commander would print the help of the commands above an unknown one, and exit with 0. */
function assertHelpedCommand(program: Command, args: string[]) {
  if (!args.includes('--help') && !args.includes('-h')) return
  let current = program
  for (let place = 0; place < args.length && current.commands.length; place++) {
    const arg = args[place]!
    if (arg === '--') return
    if (arg.startsWith('-')) {
      const takesValue = current.options.some((option) => option.required && option.long === arg)
      if (takesValue) place++
      continue
    }
    current =
      current.commands.find((command) => command.name() === arg) ??
      current.error(`Unknown command "${args.slice(0, place + 1).join(' ')}".`)
  }
}

function findCommand(program: Command, names: string[]) {
  let current = program
  for (const name of names)
    current =
      current.commands.find((command) => command.name() === name) ??
      current.error(`Unknown command "${names.join(' ')}".`)
  return current
}

/** Makes Commander throw its errors instead of printing them, so that all failures are printed alike. */
function throwUsageErrors(command: Command) {
  command
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ outputError: () => {} })
    .showSuggestionAfterError()
  for (const child of command.commands) throwUsageErrors(child)
}

/**
 * Runs the command line. Exit codes of commands other than `serve`: 0 when done, 1 when refused or failed, 2 for wrong
 * usage or settings.
 */
export async function run(argv: string[]) {
  setLogLevel(config.ATOLL_LOG_LEVEL)
  formatLogAs(logFormat)
  const program = createProgram()
  throwUsageErrors(program)
  try {
    assertHelpedCommand(program, argv.slice(2))
    await program.parseAsync(argv)
  } catch (error) {
    // Help and version are already printed; printing the help because a subcommand is missing is a failure.
    if (error instanceof CommanderError && (error.exitCode === 0 || error.code === 'commander.help')) {
      process.exitCode = error.exitCode === 0 ? 0 : 2
      return
    }
    const failure = explainFailure(error)
    if (!failure) throw error
    printFailure(failure, argv.includes('--json'))
  }
}
