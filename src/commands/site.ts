import { Command } from 'commander'
import { formatBytes } from '../core/byte-size'
import type { Deployment } from '../sites/shapes'
import { requireConfirmation } from './confirmation'
import { formatTable, pluralize, runAndPrint } from './output'
import { showProgress } from './progress'
import type { SiteTarget } from './site-target'
import { readTargetOptions } from './target-options'

const siteCommand = (name: string, description: string) =>
  new Command(name)
    .description(description)
    .option('--tenant <id>', "tenant ID; with --url, defaults to that host's tenant")
    .option('--json', 'print JSON')

async function openSite(command: Command): Promise<SiteTarget> {
  const options = readTargetOptions(command)
  await import('../app') // quotas measure what all areas store
  const { openLocalSite, openRemoteSite } = await import('./site-target')
  if (options.url === undefined) return openLocalSite(options.tenant)
  return openRemoteSite(options)
}

const formatUrls = ({ urls }: Deployment) =>
  urls.length ? `Live at ${urls.join(' and ')}` : 'The tenant has no host yet. Add one: atoll tenant hosts <id> <host>'

const deploy = siteCommand('deploy', "Deploy a folder to a tenant's hosts")
  .argument('<folder>', 'output folder of your build, which contains index.html')
  .option('--spa', 'serve index.html for unknown paths (single-page apps)')
  .action(
    runAndPrint(
      async (folder: string, { spa = false }: { spa?: boolean }, command: Command) => {
        const { packSite, readSiteFolder } = await import('./site-archive')
        const files = await readSiteFolder(folder)
        const target = await openSite(command)
        using progress = showProgress()
        const archive = packSite(files, (fraction) =>
          progress.update(
            target.name,
            fraction < 1 ? 'sending files' : 'storing files',
            fraction < 1 ? fraction : undefined,
          ),
        )
        const { leftOut } = files
        return { ...(await target.deploy(archive, spa)), ...(leftOut.length && { leftOut }) }
      },
      (deployment) =>
        [
          ...(deployment.leftOut ? [`Skipped because they start with a dot: ${deployment.leftOut.join(', ')}`] : []),
          `Deployed ${pluralize(deployment.files, 'file')} (${formatBytes(deployment.bytes, 'en')}).`,
          formatUrls(deployment),
        ].join('\n'),
    ),
  )

const list = siteCommand('list', 'List recent deployments').action(
  runAndPrint(
    async (_options: object, command: Command) => (await openSite(command)).list(),
    (deployments) =>
      deployments.length
        ? formatTable([
            ['ID', 'CREATED', 'FILES', 'SIZE', 'SPA', 'ACTIVE'],
            ...deployments.map(({ _id, created, files, bytes, spa, active }) => [
              ...[_id, created, files, formatBytes(bytes, 'en'), spa ? 'yes' : 'no', active ? 'yes' : 'no'],
            ]),
          ])
        : 'No deployments.',
  ),
)

const rollback = siteCommand('rollback', 'Roll back to an earlier deployment')
  .argument('[id]', 'deployment ID (default: the previous deployment)')
  .action(
    runAndPrint(
      async (id: string | undefined, _options: object, command: Command) => (await openSite(command)).rollback(id),
      (deployment) => `Rolled back to the deployment of ${deployment.created}.\n${formatUrls(deployment)}`,
    ),
  )

const remove = siteCommand('remove', "Delete a tenant's site and all its deployments")
  .option('--yes', 'skip the confirmation')
  .action(
    runAndPrint(
      async (options: { yes?: boolean }, command: Command) => {
        const target = await openSite(command)
        requireConfirmation(command, `Delete the site of ${target.name} and all its deployments?`, options)
        return target.remove()
      },
      () => 'Deleted the site.',
    ),
  )

export const site = new Command('site')
  .description('Deploy static sites')
  .addCommand(deploy)
  .addCommand(list)
  .addCommand(rollback)
  .addCommand(remove)
