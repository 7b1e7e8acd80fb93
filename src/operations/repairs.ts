import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '../config'
import { DAY_MS } from '../core/clock'
import { rebuildTenantIndexes } from '../tenancy/schema-versions'
import { isSecretsFileExposed, restrictSecretsFile, secretsFile } from '../tenancy/secrets-file'
import { checkTenantDatabase, listTenants } from '../tenancy/tenants'

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
  const leftovers = removeLeftovers()
  if (leftovers)
    repairs.push({ check: 'data folder', message: `Removed ${leftovers} copies that were never completed.` })
  for (const { id } of deep ? await listTenants() : []) {
    const flaws = await checkTenantDatabase(id, true).catch((): string[] => []) // the check reports the reason
    if (!areIndexFlaws(flaws)) continue
    await rebuildTenantIndexes(id)
    repairs.push({ check: `tenant ${id}`, message: 'Its indexes were built anew from their tables.' })
  }
  return repairs
}

/** Removes copies of databases that processes have left which died at least a day ago. Returns their number. */
function removeLeftovers(): number {
  const folder = join(config.ATOLL_TENANTS, '.staging')
  if (!existsSync(folder)) return 0
  const old = readdirSync(folder).filter((name) => statSync(join(folder, name)).mtimeMs < Date.now() - DAY_MS)
  for (const name of old) rmSync(join(folder, name), { recursive: true, force: true })
  return old.length
}
