import { Command } from 'commander'
import { version } from '../../package.json'
import { config } from '../config'
import { setLogLevel } from '../core/log'
import { Problem } from '../core/problem'
import { doctor } from './doctor'
import { migrate } from './migrate'
import { openapi } from './openapi'
import { postgres } from './postgres'
import { serve } from './serve'
import { tenant } from './tenant'
import { types } from './types'
import { user } from './user'
import { vault } from './vault'

/** Runs the command line. Commands other than `serve` end the process: 0 when done, 1 when refused. */
export async function run(argv: string[]) {
  setLogLevel(config.ATOLL_LOG_LEVEL)
  const program = new Command('atoll')
    .description('A self-hosted application platform for many tenants.')
    .version(version, '-V, --version')
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError()
    .addCommand(serve)
    .addCommand(tenant)
    .addCommand(user)
    .addCommand(migrate)
    .addCommand(vault)
    .addCommand(postgres)
    .addCommand(types)
    .addCommand(openapi)
    .addCommand(doctor)
    .addCommand(
      new Command('version')
        .description('tell the version')
        .option('--json', 'answer in JSON')
        .action(({ json }) => console.log(json ? JSON.stringify({ version, bun: Bun.version }) : version)),
    )
  try {
    await program.parseAsync(argv)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { code, message, more } = error
    const details = Array.isArray(more.details) ? more.details : []
    if (argv.includes('--json')) console.error(JSON.stringify({ code, message, details }))
    else console.error([message, ...details.map(({ path, message }) => `  ${path} ${message}`)].join('\n'))
    process.exitCode = 1
  }
}
