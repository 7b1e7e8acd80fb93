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
