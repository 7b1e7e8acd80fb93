import { expect, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { queryDatabase } from '../fakes/postgres'

const url = process.env.CITUS_URL
if (!url)
  console.warn(
    'SKIPPED: the tests of Citus, because CITUS_URL is not set. It is the coordinator of a cluster with two data nodes.',
  )

test.skipIf(!url)(
  '`postgres move` moves a bucket to each node of a Citus cluster, and its tenants stay available',
  async () => {
    const at = { at: createTempFolder(), env: { ATOLL_DATABASE_URL: url! } }
    const id = `citus-${crypto.randomUUID().slice(0, 8)}`
    const { home } = await createTenantByCli(at, id)
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, id))
    const nodes = await queryDatabase(
      url!,
      "select nodename || ':' || nodeport as node from pg_dist_node where shouldhaveshards",
    )
    for (const { node } of nodes) {
      expect((await runAtoll(['postgres', 'move', home, node, '--json'], { ...at, timeout: 60_000 })).json).toEqual({
        home,
        node,
      })
      expect((await call('GET', '/api/me')).body.username).toBe('root')
    }
  },
  120_000,
)
