import { Command } from 'commander'
import { addBucket, initialize, listBuckets, moveBucket } from '../tenancy/buckets'
import { purge } from '../tenancy/remains'
import { clusterStates } from '../tenancy/storage'
import { requireConfirmation } from './confirmation'
import { answers, count, table } from './output'

const init = new Command('init')
  .description('Prepare the database of ATOLL_DATABASE_URL, and take over the tenants whose files are here')
  .option('--json', 'print JSON')
  .action(
    answers(
      (_options: object, _command: Command) => initialize(),
      ({ buckets, adopted }) =>
        `The database is ready, with ${buckets.length} bucket${buckets.length === 1 ? '' : 's'}.${
          adopted.length ? ` Taken over, and served from their files as before: ${adopted.join(', ')}.` : ''
        }`,
    ),
  )

const status = new Command('status')
  .description('Show the clusters, the buckets, and how many tenants are in each')
  .option('--json', 'print JSON')
  .action(
    answers(
      async (_options: object, _command: Command) => {
        const clusters = await clusterStates()
        if (clusters.some(({ problem }) => problem)) process.exitCode = 1
        const reachable = clusters.some(({ name, problem }) => name === 'main' && !problem)
        return { clusters, buckets: reachable ? await listBuckets() : [] }
      },
      ({ clusters, buckets }) =>
        clusters.length
          ? [
              table(
                clusters.map(({ name, server, citus, problem }) => [name, problem ?? server, citus ? 'Citus' : '']),
              ),
              buckets.length
                ? table(buckets.map(({ home, tenants }) => [home, count(tenants, 'tenant')]))
                : 'No buckets.',
            ].join('\n\n')
          : 'This installation keeps its data in files. Set ATOLL_DATABASE_URL to use PostgreSQL.',
    ),
  )

const add = new Command('add')
  .description('Create a bucket')
  .argument('[cluster]', 'the cluster that gets it', 'main')
  .option('--json', 'print JSON')
  .action(
    answers(
      (cluster: string, _options: object, _command: Command) => addBucket(cluster),
      ({ home }) => `Created the bucket ${home}.`,
    ),
  )

const move = new Command('move')
  .description('Move a bucket, with all its tenants, to another node of a Citus cluster')
  .argument('<bucket>', 'which bucket: <cluster>/<bucket>')
  .argument('<node>', 'where to: <host>:<port>')
  .option('--json', 'print JSON')
  .action(
    answers(
      (bucket: string, node: string, _options: object, _command: Command) => moveBucket(bucket, node),
      ({ home, node }) => `The bucket ${home} is on ${node}.`,
    ),
  )

const removal = new Command('purge')
  .description('Remove the rows of tenants that were deleted or moved elsewhere')
  .option('--hours <number>', 'minimum age in hours', '24')
  .option('--yes', 'do not ask for confirmation')
  .option('--json', 'print JSON')
  .action(
    answers(
      ({ hours, yes }: { hours: string; yes?: boolean }, command: Command) => {
        if (!/^\d{1,6}$/.test(hours)) command.error('--hours takes a whole number.')
        requireConfirmation(command, `Remove rows that were left behind over ${hours} hours ago?`, { yes })
        return purge(Number(hours))
      },
      (purged) =>
        purged.length
          ? table(
              purged.map(({ home, tenants, rows }) => [home, `${count(rows, 'row')} of ${count(tenants, 'tenant')}`]),
            )
          : 'Nothing is left over.',
    ),
  )

export const postgres = new Command('postgres')
  .description('Manage PostgreSQL clusters and buckets')
  .addCommand(init)
  .addCommand(status)
  .addCommand(move)
  .addCommand(removal)
  .addCommand(new Command('bucket').description('Manage buckets, the schemas that tenants share').addCommand(add))
