import { Command } from 'commander'
import type { ChangeReport } from '../definitions/push'
import type { DefinitionTarget } from '../definitions/target'
import { requireConfirmation } from './confirmation'
import { pluralize, runAndPrint } from './output'
import { readTargetOptions } from './target-options'

type TargetOptions = { tenant?: string }
type DiffOptions = TargetOptions & { prune?: boolean; exitCode?: boolean }
type PushOptions = TargetOptions & { prune?: boolean; pruneData?: boolean; yes?: boolean }

const definitionCommand = (name: string, description: string) =>
  new Command(name)
    .description(description)
    .argument('<folder>', 'the folder of the files')
    .option('--tenant <id>', 'the id of the tenant; of a server, default: the tenant of its address')
    .option('--json', 'print JSON')

/** Returns the tenant that a command is for: one of the server that `--url` names, or one of the data here. */
async function openTarget(command: Command): Promise<DefinitionTarget> {
  const options = readTargetOptions(command)
  await import('../app') // areas store the entities that a change concerns
  const { openLocalTarget, openRemoteTarget } = await import('../definitions/target')
  if (options.url === undefined) return openLocalTarget(options.tenant)
  return openRemoteTarget(options.url, options.token, options.tenant)
}

const formatChange = ({ action, name, details = [], entities }: ChangeReport) =>
  [
    `${action} blueprint ${name}${entities === undefined ? '' : ` (${pluralize(entities, 'entity')})`}`,
    ...details.map((detail) => `  ${detail}`),
  ].join('\n')

const formatChanges = (changes: ChangeReport[]) => changes.map(formatChange).join('\n')

export const pull = definitionCommand('pull', "Write a tenant's blueprints as files").action(
  runAndPrint(
    async (folder: string, _options: TargetOptions, command: Command) => {
      const { pullDefinitions } = await import('../definitions/push')
      return pullDefinitions(await openTarget(command), folder)
    },
    ({ blueprints }, folder) => `Wrote ${pluralize(blueprints, 'blueprint')} to ${folder}.`,
  ),
)

export const diff = definitionCommand('diff', 'Print what a push of the files would change')
  .option('--prune', 'include blueprints that have no file, which a push with --prune removes')
  .option('--exit-code', 'exit with 1 when something would change')
  .action(
    runAndPrint(
      async (folder: string, { prune, exitCode }: DiffOptions, command: Command) => {
        const { planPush, reportPlan } = await import('../definitions/push')
        const target = await openTarget(command)
        const changes = await reportPlan(target, await planPush(target, folder, prune))
        if (exitCode && changes.length) process.exitCode = 1
        return { changes }
      },
      ({ changes }) => (changes.length ? formatChanges(changes) : 'Nothing would change.'),
    ),
  )

export const push = definitionCommand('push', 'Make the blueprints of a tenant those of the files')
  .option('--prune', 'remove blueprints that have no file, unless they have entities')
  .option('--prune-data', 'with --prune: remove their entities, too')
  .option('--yes', 'do not ask for confirmation')
  .action(
    runAndPrint(
      async (folder: string, options: PushOptions, command: Command) => {
        const definitions = await import('../definitions/push')
        const target = await openTarget(command)
        const plan = await definitions.planPush(target, folder, options.prune)
        const changes = await definitions.reportPlan(target, plan)
        if (!changes.length) return { changes }
        if (!options.yes) console.error(formatChanges(changes))
        requireConfirmation(command, `Make ${pluralize(changes.length, 'change')}?`, options)
        await definitions.push(target, folder, plan, options.pruneData)
        return { changes }
      },
      ({ changes }) => (changes.length ? formatChanges(changes) : 'Nothing has changed.'),
    ),
  )
