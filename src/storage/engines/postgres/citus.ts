import pg from 'pg'
import { Problem } from '../../../core/problem'

type Queryable = Pick<pg.ClientBase, 'query'>

/**
 * Starts a transaction on Citus: its local settings, such as the tenant, also apply on the node that has the bucket,
 * and only there.
 */
export const PROPAGATE_LOCAL_SQL = "set local citus.propagate_set_commands to 'local'; "

/** Allows triggers on distributed tables. Ours change only rows of their own bucket, which are on the same node. */
export const ALLOW_TRIGGERS_SQL = 'set local citus.enable_unsafe_triggers to on; '

/** Tells whether the database has the Citus extension. */
export const hasCitus = async (client: Queryable) =>
  (await client.query("select from pg_extension where extname = 'citus'")).rows.length > 0

/** Makes a bucket a distributed schema where Citus is present, so that Citus chooses its node and can move it. */
export async function distributeBucket(client: Queryable, bucket: string) {
  if (!(await hasCitus(client))) return
  const name = pg.escapeLiteral(bucket)
  const { rows } = await client.query(`select from citus_schemas where schema_name = ${name}::text::regnamespace`)
  if (!rows.length)
    await client.query(`${ALLOW_TRIGGERS_SQL}select citus_schema_distribute(${name}::text::regnamespace)`)
}

/**
 * Moves a bucket to another Citus node, `host:port`, while it is in use.
 * @throws 400 INVALID_INPUT when `node` has another form
 * @throws 409 NO_CITUS when the database does not run Citus
 * @throws 404 NODE_NOT_FOUND when Citus has no such data node
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
