import pg from 'pg'
import { Problem } from '../../../core/problem'

type Queryable = Pick<pg.ClientBase, 'query'>

/** What a transaction says first: whom it belongs to counts on the node that has the bucket, too, and only there. */
export const PROPAGATE_LOCAL_SQL = "set local citus.propagate_set_commands to 'local'; "

/** Our triggers touch only rows of the bucket that they belong to, which are on the same node. */
export const ALLOW_TRIGGERS_SQL = 'set local citus.enable_unsafe_triggers to on; '

/** Whether the database is a Citus. */
export const hasCitus = async (client: Queryable) =>
  (await client.query("select from pg_extension where extname = 'citus'")).rows.length > 0

/** Where Citus is present, makes a bucket a distributed schema, so that Citus chooses its node and can move it. */
export async function distributeBucket(client: Queryable, bucket: string) {
  if (!(await hasCitus(client))) return
  const name = pg.escapeLiteral(bucket)
  const { rows } = await client.query(`select from citus_schemas where schema_name = ${name}::text::regnamespace`)
  if (!rows.length)
    await client.query(`${ALLOW_TRIGGERS_SQL}select citus_schema_distribute(${name}::text::regnamespace)`)
}

/**
 * Has Citus move a bucket to another of its nodes, `host:port`, while it is served. @throws 409 where the database is no Citus, or the node none of its own
 */
export async function moveBucketSchema(client: Queryable, bucket: string, node: string) {
  const [, host, port] = /^(.+):(\d+)$/.exec(node) ?? []
  if (!host || !port) throw new Problem(400, 'INVALID_INPUT', `Invalid node "${node}". Use host:port.`)
  if (!(await hasCitus(client))) {
    const message = 'This database does not run Citus, so whole buckets cannot be moved. Use "atoll tenant move".'
    throw new Problem(409, 'NO_CITUS', message)
  }
  const { rows: nodes } = await client.query('select nodename, nodeport from pg_dist_node where shouldhaveshards')
  const nodeNames = nodes.map(({ nodename, nodeport }) => `${nodename}:${nodeport}`)
  if (!nodeNames.includes(node))
    throw new Problem(404, 'NODE_NOT_FOUND', `Citus has no data node "${node}". Data nodes: ${nodeNames.join(', ')}.`)
  await distributeBucket(client, bucket)
  await client.query(`select citus_schema_move(${pg.escapeLiteral(bucket)}::text::regnamespace, $1, $2::int)`, [
    host,
    port,
  ])
}
