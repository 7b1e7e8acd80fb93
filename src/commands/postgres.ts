import { Command } from 'commander'
import { addBucket, initialize, listBuckets } from '../tenancy/buckets'
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

export const postgres = new Command('postgres')
  .description('prepare and show the databases of PostgreSQL')
  .addCommand(init)
  .addCommand(status)
  .addCommand(new Command('bucket').description('the schemas that tenants share').addCommand(add))
