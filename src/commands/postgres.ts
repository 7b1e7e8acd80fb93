import { Command } from 'commander'
import { addBucket, initializeDatabase, listBuckets, moveBucket } from '../tenancy/buckets'
import { getClusterStates } from '../tenancy/databases'
import { purgeRemains } from '../tenancy/purge'
import { requireConfirmation } from './confirmation'
import { formatTable, pluralize, runAndPrint } from './output'

const init = new Command('init')
  .description('Prepare the database of ATOLL_DATABASE_URL and register the tenants in the local data folder')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      (_options: object, _command: Command) => initializeDatabase(),
      ({ buckets, adopted }) =>
        `The database is ready, with ${buckets.length} bucket${buckets.length === 1 ? '' : 's'}.${
          adopted.length ? ` Registered, and still served from their files: ${adopted.join(', ')}.` : ''
        }`,
    ),
  )

const status = new Command('status')
  .description('List clusters, buckets and the number of tenants in each')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      async (_options: object, _command: Command) => {
        const clusters = await getClusterStates()
        if (clusters.some(({ problem }) => problem)) process.exitCode = 1
        const reachable = clusters.some(({ name, problem }) => name === 'main' && !problem)
        return { clusters, buckets: reachable ? await listBuckets() : [] }
      },
      ({ clusters, buckets }) =>
        clusters.length
          ? [
              formatTable(
                clusters.map(({ name, server, citus, problem }) => [
                  name,
                  problem ?? server,
                  citus ? 'Citus: not supported yet' : '',
                ]),
              ),
              buckets.length
                ? formatTable(buckets.map(({ home, tenants }) => [home, pluralize(tenants, 'tenant')]))
                : 'No buckets.',
            ].join('\n\n')
          : 'This installation stores its data in files. Set ATOLL_DATABASE_URL to use PostgreSQL.',
    ),
  )

const add = new Command('add')
  .description('Create a bucket')
  .argument('[cluster]', 'cluster of the new bucket', 'main')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      (cluster: string, _options: object, _command: Command) => addBucket(cluster),
      ({ home }) => `Created bucket ${home}.`,
    ),
  )

const move = new Command('move')
  .description(
    'Move a bucket and its tenants to another node of a Citus cluster (experimental: Citus is not supported yet)',
  )
  .argument('<bucket>', 'bucket, as <cluster>/<bucket>')
  .argument('<node>', 'target node, as <host>:<port>')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      (bucket: string, node: string, _options: object, _command: Command) => moveBucket(bucket, node),
      ({ home, node }) => `Moved bucket ${home} to ${node}.`,
    ),
  )

const purgeCommand = new Command('purge')
  .description('Delete the rows of tenants that were deleted or moved')
  .option('--hours <number>', 'minimum age in hours', '24')
  .option('--yes', 'skip the confirmation')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      ({ hours, yes }: { hours: string; yes?: boolean }, command: Command) => {
        if (!/^\d{1,6}$/.test(hours)) command.error('--hours takes a whole number.')
        requireConfirmation(command, `Delete rows left behind more than ${hours} hours ago?`, { yes })
        return purgeRemains(Number(hours))
      },
      (purged) =>
        purged.length
          ? formatTable(
              purged.map(({ home, tenants, rows }) => [
                home,
                `${pluralize(rows, 'row')} of ${pluralize(tenants, 'tenant')}`,
              ]),
            )
          : 'Nothing to purge.',
    ),
  )

export const postgres = new Command('postgres')
  .description('Manage PostgreSQL clusters and buckets')
  .addCommand(init)
  .addCommand(status)
  .addCommand(move)
  .addCommand(purgeCommand)
  .addCommand(new Command('bucket').description('Manage buckets, the schemas that tenants share').addCommand(add))
