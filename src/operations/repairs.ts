import { existsSync } from 'node:fs'
import { undoAbandonedRestores } from '../tenancy/pending-restores'
import { rebuildTenantIndexes } from '../tenancy/schema-versions'
import { isSecretsFileExposed, restrictSecretsFile, secretsFile } from '../tenancy/secrets-file'
import { removeAbandonedFolders } from '../tenancy/staged-folder'
import { trashAbandonedFolders } from '../tenancy/tenant-folders'
import { listTenants } from '../tenancy/tenant-list'
import { checkTenantDatabase } from '../tenancy/tenants'

/** What was mended, and how. */
export type Repair = { check: string; message: string }

/** The sentences of SQLite about indexes, which are made of their tables. */
const INDEX_FLAW =
  /^(row \d+ missing from index|wrong # of entries in index|non-unique entry in index|row \d+ values differ from index)/

/** Tells whether flaws of a database concern nothing but its indexes. */
export const areIndexFlaws = (flaws: string[]) => flaws.length > 0 && flaws.every((flaw) => INDEX_FLAW.test(flaw))

/** Mends what can be mended without losing anything, and returns what that was. */
export async function repairInstallation(deep: boolean): Promise<Repair[]> {
  const repairs: Repair[] = []
  if (existsSync(secretsFile) && isSecretsFileExposed()) {
    restrictSecretsFile()
    repairs.push({ check: 'secrets', message: 'Only the owner of secrets.json can read it now.' })
  }
  const abandoned = removeAbandonedFolders()
  if (abandoned)
    repairs.push({ check: 'data folder', message: `Copies that were never completed were removed: ${abandoned}.` })
  for (const id of await undoAbandonedRestores())
    repairs.push({ check: `tenant ${id}`, message: 'A restore was interrupted. It has the data from before again.' })
  for (const id of await trashAbandonedFolders())
    repairs.push({ check: `folder ${id}`, message: 'A deletion or a restore was interrupted. It is in .trash now.' })
  for (const { id } of deep ? await listTenants() : []) {
    const flaws = await checkTenantDatabase(id, true).catch((): string[] => []) // the check reports the reason
    if (!areIndexFlaws(flaws)) continue
    await rebuildTenantIndexes(id)
    repairs.push({ check: `tenant ${id}`, message: 'Its indexes were built anew from their tables.' })
  }
  return repairs
}
