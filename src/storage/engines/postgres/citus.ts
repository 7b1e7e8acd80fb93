import pg from 'pg'
import { Problem } from '../../../core/problem'

type Client = Pick<pg.ClientBase, 'query'>

/**
 * Has Citus move a bucket to another of its nodes, `host:port`, while it is served. A bucket that Citus does not know yet
 * becomes a distributed schema first. @throws 409 where the database is no Citus, or the node none of its own
 */
export async function moveSchema(client: Client, bucket: string, node: string) {
  const [, host, port] = /^(.+):(\d+)$/.exec(node) ?? []
  if (!host || !port) throw new Problem(400, 'INVALID_INPUT', `"${node}" is no node: give host:port.`)
  const { rows: extension } = await client.query("select from pg_extension where extname = 'citus'")
  if (!extension.length) {
    const message = 'This database is no Citus, so its buckets cannot be moved whole. Use "atoll tenant move".'
    throw new Problem(409, 'NO_CITUS', message)
  }
  const { rows: nodes } = await client.query('select nodename, nodeport from pg_dist_node where shouldhaveshards')
  const known = nodes.map(({ nodename, nodeport }) => `${nodename}:${nodeport}`)
  if (!known.includes(node))
    throw new Problem(404, 'NODE_NOT_FOUND', `Citus knows no node "${node}" for data, only ${known.join(', ')}.`)
  const name = pg.escapeLiteral(bucket)
  const { rows: distributed } = await client.query(
    `select from citus_schemas where schema_name = ${name}::text::regnamespace`,
  )
  if (!distributed.length) await client.query(`select citus_schema_distribute(${name}::text::regnamespace)`)
  await client.query(`select citus_schema_move(${name}::text::regnamespace, $1, $2::int)`, [host, port])
}
