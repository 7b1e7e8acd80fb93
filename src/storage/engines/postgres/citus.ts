import pg from 'pg'
import { Problem } from '../../../core/problem'

type Client = Pick<pg.ClientBase, 'query'>

/** What a transaction says first: whom it belongs to counts on the node that has the bucket, too, and only there. */
export const LOCAL = "set local citus.propagate_set_commands to 'local'; "

/** Our triggers touch only rows of the bucket that they belong to, which are on the same node. */
export const TRIGGERS = 'set local citus.enable_unsafe_triggers to on; '

/** Whether the database is a Citus. */
export const isThere = async (client: Client) =>
  (await client.query("select from pg_extension where extname = 'citus'")).rows.length > 0

/** Where Citus is present, makes a bucket a distributed schema, so that Citus chooses its node and can move it. */
export async function distribute(client: Client, bucket: string) {
  if (!(await isThere(client))) return
  const name = pg.escapeLiteral(bucket)
  const { rows } = await client.query(`select from citus_schemas where schema_name = ${name}::text::regnamespace`)
  if (!rows.length) await client.query(`${TRIGGERS}select citus_schema_distribute(${name}::text::regnamespace)`)
}

/**
 * Has Citus move a bucket to another of its nodes, `host:port`, while it is served. @throws 409 where the database is no Citus, or the node none of its own
 */
export async function moveSchema(client: Client, bucket: string, node: string) {
  const [, host, port] = /^(.+):(\d+)$/.exec(node) ?? []
  if (!host || !port) throw new Problem(400, 'INVALID_INPUT', `"${node}" is no node: give host:port.`)
  if (!(await isThere(client))) {
    const message = 'This database is no Citus, so its buckets cannot be moved whole. Use "atoll tenant move".'
    throw new Problem(409, 'NO_CITUS', message)
  }
  const { rows: nodes } = await client.query('select nodename, nodeport from pg_dist_node where shouldhaveshards')
  const known = nodes.map(({ nodename, nodeport }) => `${nodename}:${nodeport}`)
  if (!known.includes(node))
    throw new Problem(404, 'NODE_NOT_FOUND', `Citus knows no node "${node}" for data, only ${known.join(', ')}.`)
  await distribute(client, bucket)
  await client.query(`select citus_schema_move(${pg.escapeLiteral(bucket)}::text::regnamespace, $1, $2::int)`, [
    host,
    port,
  ])
}
