import { tenantMigrations } from '../../migrations'
import { resealForTenant } from '../platform/vault/vault'
import type { RunQuery } from '../storage/port'
import { databases } from '../tenancy/databases'
import type { StagedFolder } from '../tenancy/staged-folder'
import { credentialTables } from './credential-tables'

/**
 * Brings a staged database of the tenant `from` up to date, and makes it that of a tenant. One of another id gets the
 * secrets encrypted for it, and no credentials. `secrets` tells whether they can be decrypted here, or are dropped.
 * Returns how many are left out.
 */
export async function prepareStagedDatabase(
  staged: StagedFolder,
  from: string,
  { id, uid }: { id: string; uid: string },
  secrets: 'kept' | 'dropped' = 'kept',
): Promise<number> {
  const data = await databases.openTenantCopy(staged.locate(uid), tenantMigrations)
  try {
    let lostSecrets = 0
    await data.runExclusive(async ({ query, markServing }) => {
      if (secrets === 'dropped') lostSecrets = await dropAllSecrets(query)
      else if (id !== from) lostSecrets = await resealForTenant(query, from, id)
      if (id !== from) await dropCredentials(query)
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

async function dropCredentials(query: RunQuery) {
  for (const table of credentialTables()) await query(`delete from ${table}`)
}
