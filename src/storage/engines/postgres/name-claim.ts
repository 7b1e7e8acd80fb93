import type pg from 'pg'
import type { NameClaim } from '../../port'
import { runQuery } from './query'

/**
 * Claims a name until the claim is disposed of, or the connection breaks. Returns undefined when another process has
 * claimed it. Ends the connection unless the name is claimed.
 */
export async function claimName(client: pg.Client, name: string): Promise<NameClaim | undefined> {
  let isClaimed = false
  try {
    // The transaction stays open, because poolers may give the connection to another client after each transaction.
    await client.query('begin; set local idle_in_transaction_session_timeout to 0')
    const { rows } = await client.query('select pg_try_advisory_xact_lock(hashtextextended($1, 0)) as got', [name])
    isClaimed = rows[0].got
  } finally {
    if (!isClaimed) await client.end().catch(() => {}) // the connection may be broken already
  }
  if (!isClaimed) return
  return {
    assertHeld: async () => void (await runQuery(client, 'select 1')),
    [Symbol.asyncDispose]: () => client.end(),
  }
}

/** Returns whether a connection has claimed a name. */
export async function isNameClaimed(client: pg.ClientBase, name: string): Promise<boolean> {
  // A lock with a single number of 64 bits is listed by its two halves, and with 1 as objsubid.
  const { rows } = await client.query(
    `select exists (select from pg_locks where locktype = 'advisory' and granted and objsubid = 1
      and database = (select oid from pg_database where datname = current_database())
      and (classid::bigint << 32 | objid::bigint) = hashtextextended($1, 0)) as claimed`,
    [name],
  )
  return rows[0].claimed
}
