import { tenantMigrations } from '../../migrations'
import { EVENT_CURSOR } from '../jobs/event-dispatcher'
import { resealForTenant } from '../platform/vault/vault'
import type { RunQuery } from '../storage/port'
import { databases } from '../tenancy/databases'
import type { StagedFolder } from '../tenancy/staged-folder'
import { copyDetachments } from './copy-detachments'
import { credentialTables } from './credential-tables'

/**
 * Brings a staged database of the tenant `from` up to date, and makes it that of a tenant. One of another id gets the
 * secrets encrypted for it, and no credentials. `secrets` tells whether they can be decrypted here, or are dropped.
 * A detached one does not do again outside what its origin does. Returns how many secrets are left out.
 */
export async function prepareStagedDatabase(
  staged: StagedFolder,
  from: string,
  { id, uid }: { id: string; uid: string },
  { secrets = 'kept', isDetached = false }: { secrets?: 'kept' | 'dropped'; isDetached?: boolean } = {},
): Promise<number> {
  const data = await databases.openTenantCopy(staged.locate(uid), tenantMigrations)
  try {
    let lostSecrets = 0
    await data.runExclusive(async ({ query, markServing }) => {
      if (secrets === 'dropped') lostSecrets = await dropAllSecrets(query)
      else if (id !== from) lostSecrets = await resealForTenant(query, from, id)
      if (id !== from) await dropCredentials(query)
      if (isDetached) await detach(query)
      // What is cached of the data before is outdated.
      await query("update versions set version = version + 1 where topic <> 'vault'")
      await markServing()
    })
    await data.finish()
    return lostSecrets
  } finally {
    await data.close()
  }
}

/** Removes all secrets, and what says which key is the oldest that may be used. Returns their number. */
async function dropAllSecrets(query: RunQuery): Promise<number> {
  await query("delete from versions where topic = 'vault'")
  return (await query('delete from sealed returning 1')).length
}

async function detach(query: RunQuery) {
  for (const statement of copyDetachments()) await query(statement)
  // Of the events until now, the origin tells.
  await query(
    `insert into cursors (name, seq) select ?, coalesce(max(seq), 0) from events where true
      on conflict ("name") do update set seq = excluded.seq`,
    [EVENT_CURSOR],
  )
}

async function dropCredentials(query: RunQuery) {
  for (const table of credentialTables()) await query(`delete from ${table}`)
}
