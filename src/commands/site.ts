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
    .option('--tenant <id>', 'the id of the tenant; of a server, default: the tenant of its address')
    .option('--json', 'print JSON')

async function openSite(command: Command): Promise<SiteTarget> {
  const options = readTargetOptions(command)
  await import('../app') // quotas measure what all areas store
  const { openLocalSite, openRemoteSite } = await import('./site-target')
  if (options.url === undefined) return openLocalSite(options.tenant)
  return openRemoteSite(options)
}

const formatUrls = ({ urls }: Deployment) =>
  urls.length
    ? `See it at ${urls.join(' and ')}`
    : 'No host leads to the tenant yet. Give it one: atoll tenant hosts <id> <host>'

const deploy = siteCommand('deploy', 'Put the files of a folder at the hosts of a tenant')
  .argument('<folder>', 'the folder that your build writes, with index.html in it')
  .option('--spa', 'show index.html for unknown paths, for an app with its own router')
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
          ...(deployment.leftOut ? [`Left out, because they begin with a dot: ${deployment.leftOut.join(', ')}`] : []),
          `Deployed ${pluralize(deployment.files, 'file')} (${formatBytes(deployment.bytes, 'en')}).`,
          formatUrls(deployment),
        ].join('\n'),
    ),
  )

const list = siteCommand('list', 'List the last deployments of a site').action(
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

const rollback = siteCommand('rollback', 'Bring back a former deployment')
  .argument('[id]', 'the id of a deployment; default: the one that was active before')
  .action(
    runAndPrint(
      async (id: string | undefined, _options: object, command: Command) => (await openSite(command)).rollback(id),
      (deployment) => `The deployment of ${deployment.created} is active.\n${formatUrls(deployment)}`,
    ),
  )

const remove = siteCommand('remove', 'Remove the site of a tenant with all its deployments')
  .option('--yes', 'do not ask for confirmation')
  .action(
    runAndPrint(
      async (options: { yes?: boolean }, command: Command) => {
        const target = await openSite(command)
        requireConfirmation(command, `Remove the site of ${target.name} with all its deployments?`, options)
        return target.remove()
      },
      () => 'The site is removed.',
    ),
  )

export const site = new Command('site')
  .description('Deploy static sites')
  .addCommand(deploy)
  .addCommand(list)
  .addCommand(rollback)
  .addCommand(remove)
