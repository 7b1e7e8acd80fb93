import { Command } from 'commander'
import { environment } from '../config'
import { badRequest } from '../core/problem'
import type { ChangeReport } from '../definitions/push'
import type { DefinitionTarget } from '../definitions/target'
import { requireConfirmation } from './confirmation'
import { pluralize, runAndPrint } from './output'
import { readTargetOptions } from './target-options'

type TargetOptions = { tenant?: string }
type DiffOptions = TargetOptions & { prune?: boolean; exitCode?: boolean; envFile?: string }
type PushOptions = TargetOptions & { prune?: boolean; pruneData?: boolean; yes?: boolean; envFile?: string }

export const ENV_FILE_DESCRIPTION = 'file of NAME=value lines with secrets; overrides the environment'

const definitionCommand = (name: string, description: string) =>
  new Command(name)
    .description(description)
    .argument('<folder>', 'folder of definition files')
    .option('--tenant <id>', "tenant ID; with --url, defaults to that host's tenant")
    .option('--json', 'print JSON')

/** Returns the tenant that a command is for: one of the server that `--url` names, or one of the data here. */
async function openTarget(command: Command): Promise<DefinitionTarget> {
  const options = readTargetOptions(command)
  await import('../app') // areas store the entities that a change concerns
  const { openLocalTarget, openRemoteTarget } = await import('../definitions/target')
  if (options.url === undefined) return openLocalTarget(options.tenant)
  return openRemoteTarget(options.url, options.token, options.tenant)
}

/** Returns a function that returns the value of a variable. @throws 400 for a file that cannot be read */
export async function openSecrets(envFile: string | undefined): Promise<(name: string) => string | undefined> {
  if (!envFile) return (name) => environment[name]
  const file = Bun.file(envFile)
  if (!(await file.exists())) badRequest({ path: '--env-file', message: `The file "${envFile}" does not exist.` })
  const { parseEnv } = await import('node:util')
  const values = parseEnv(await file.text()) as Record<string, string | undefined>
  return (name) => values[name] ?? environment[name]
}

const formatChange = ({ action, kind, name, details = [], entities }: ChangeReport) =>
  [
    `${action} ${kind} ${name}${entities === undefined ? '' : ` (${pluralize(entities, 'entity')})`}`,
    ...details.map((detail) => `  ${detail}`),
  ].join('\n')

export const formatChanges = (changes: ChangeReport[]) => changes.map(formatChange).join('\n')

const formatMissing = (names: string[] = []) =>
  names.length ? `\nSet ${names.join(', ')} in the environment or an --env-file before you push.` : ''

export const pull = definitionCommand('pull', "Write a tenant's definitions to files").action(
  runAndPrint(
    async (folder: string, _options: TargetOptions, command: Command) => {
      const { pullFolder } = await import('../definitions/folder-push')
      return pullFolder(await openTarget(command), folder)
    },
    (counts, folder) => `Wrote ${formatCounts(counts)} to ${folder}.`,
  ),
)

function formatCounts(counts: Record<string, number>) {
  const parts = Object.entries(counts).flatMap(([folder, count]) => (count ? [`${folder}: ${count}`] : []))
  return parts.length ? `definitions (${parts.join(', ')})` : 'no definitions'
}

export const diff = definitionCommand('diff', 'Show what a push would change')
  .option('--prune', 'include definitions without a file, which push --prune deletes')
  .option('--env-file <file>', ENV_FILE_DESCRIPTION)
  .option('--exit-code', 'exit with 1 if there are changes')
  .action(
    runAndPrint(
      async (folder: string, { prune, exitCode, envFile }: DiffOptions, command: Command) => {
        const { diffFolder } = await import('../definitions/folder-push')
        const readSecret = await openSecrets(envFile)
        const { changes, missingSecrets } = await diffFolder(await openTarget(command), folder, { prune, readSecret })
        if (exitCode && changes.length) process.exitCode = 1
        return { changes, ...(missingSecrets.length && { missingSecrets }) }
      },
      ({ changes, missingSecrets }) =>
        changes.length ? formatChanges(changes) + formatMissing(missingSecrets) : 'No changes.',
    ),
  )

export const push = definitionCommand('push', 'Apply definition files to a tenant')
  .option('--prune', 'delete definitions without a file, except blueprints with entities')
  .option('--prune-data', 'with --prune: also delete blueprints with entities, and the entities')
  .option('--env-file <file>', ENV_FILE_DESCRIPTION)
  .option('--yes', 'skip the confirmation')
  .action(
    runAndPrint(
      async (folder: string, options: PushOptions, command: Command) => {
        const { diffFolder, pushFolder } = await import('../definitions/folder-push')
        const target = await openTarget(command)
        const folderOptions = { ...options, readSecret: await openSecrets(options.envFile) }
        const { changes, missingSecrets } = await diffFolder(target, folder, folderOptions)
        if (!changes.length) return { changes }
        if (!options.yes) console.error(formatChanges(changes) + formatMissing(missingSecrets))
        requireConfirmation(command, `Make ${pluralize(changes.length, 'change')}?`, options)
        return pushFolder(target, folder, folderOptions)
      },
      ({ changes }) => (changes.length ? formatChanges(changes) : 'No changes.'),
    ),
  )
