import { Command } from 'commander'
import { addBucket, initialize, listBuckets, moveBucket } from '../tenancy/buckets'
import { purge } from '../tenancy/remains'
import { clusterStates } from '../tenancy/storage'
import { answers, table } from './output'

const init = new Command('init')
  .description('prepare the database of ATOLL_DATABASE_URL, and take over the tenants whose files are here')
  .option('--json', 'answer in JSON')
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
  .description('show the clusters, the buckets, and how many tenants are in each')
  .option('--json', 'answer in JSON')
  .action(
    answers(
      async (_options: object, _command: Command) => {
        const clusters = await clusterStates()
        if (clusters.some(({ problem }) => problem)) process.exitCode = 1
        const reachable = clusters.some(({ name, problem }) => name === 'main' && !problem)
        return { clusters, buckets: reachable ? await listBuckets() : [] }
      },
      ({ clusters, buckets }) =>
        [
          table(clusters.map(({ name, server, citus, problem }) => [name, problem ?? server, citus ? 'Citus' : ''])),
          buckets.length ? table(buckets.map(({ home, tenants }) => [home, `${tenants} tenants`])) : 'No buckets.',
        ].join('\n\n'),
    ),
  )

const add = new Command('add')
  .description('make one more bucket')
  .argument('[cluster]', 'on which cluster', 'main')
  .option('--json', 'answer in JSON')
  .action(
    answers(
      (cluster: string, _options: object, _command: Command) => addBucket(cluster),
      ({ home }) => `Made the bucket ${home}.`,
    ),
  )

const move = new Command('move')
  .description('move a bucket, with all its tenants, to another node of a Citus cluster')
  .argument('<bucket>', 'which bucket: <cluster>/<bucket>')
  .argument('<node>', 'where to: <host>:<port>')
  .option('--json', 'answer in JSON')
  .action(
    answers(
      (bucket: string, node: string, _options: object, _command: Command) => moveBucket(bucket, node),
      ({ home, node }) => `The bucket ${home} is on ${node}.`,
    ),
  )

const removal = new Command('purge')
  .description('remove the rows of tenants that were deleted or moved elsewhere')
  .option('--hours <number>', 'that long ago at least', '24')
  .option('--json', 'answer in JSON')
  .action(
    answers(
      ({ hours }: { hours: string }, command: Command) =>
        /^\d{1,6}$/.test(hours) ? purge(Number(hours)) : command.error('--hours takes a whole number.'),
      (purged) =>
        purged.length
          ? table(purged.map(({ home, tenants, rows }) => [home, `${rows} rows of ${tenants} tenants`]))
          : 'Nothing is left over.',
    ),
  )

export const postgres = new Command('postgres')
  .description('prepare and show the databases of PostgreSQL')
  .addCommand(init)
  .addCommand(status)
  .addCommand(move)
  .addCommand(removal)
  .addCommand(new Command('bucket').description('the schemas that tenants share').addCommand(add))
