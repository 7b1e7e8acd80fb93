import { eq } from 'drizzle-orm'
import { splitLines } from '../core/lines'
import { notFound } from '../core/problem'
import { measureDatabase } from '../tenancy/database-size'
import { copyDatabase, queryDatabaseFile } from '../tenancy/databases'
import { locationOf } from '../tenancy/placement'
import { registry } from '../tenancy/registry'
import { prepareRestoredTenant, serveStagedDatabase } from '../tenancy/restored-tenants'
import { createStagedFolder } from '../tenancy/staged-folder'
import { tenants } from '../tenancy/tables'
import { holdContents } from './contents/content-hold'
import { copyContents } from './contents/content-placement'
import { listContentsOfFile } from './contents/named-contents'
import { createDatabaseOfRows } from './rows'
import type { ClonedTenant } from './shapes'
import { prepareStagedDatabase } from './staged-database'
import { type BackupControl, stageRows } from './tenant-backup'

/**
 * Copies a tenant that may be in use to a new one, which gets neither hosts nor credentials other than passwords, and
 * does nothing outside until the operator allows it.
 * @throws 404 TENANT_NOT_FOUND, 409 TENANT_EXISTS, 400 INVALID_INPUT for an invalid id, 507 STORAGE_FULL
 */
export async function cloneTenant(
  from: string,
  as: string,
  control: BackupControl = {},
  { withoutSecrets = false }: { withoutSecrets?: boolean } = {},
): Promise<ClonedTenant> {
  const startedAt = performance.now()
  const entry = (await registry.db.select().from(tenants).where(eq(tenants.id, from)).get()) ?? notFound('tenant')
  const clone = await prepareRestoredTenant(as, false)
  using staged = createStagedFolder((await measureDatabase(entry)) ?? 0)
  await using hold = await holdContents(entry)
  if (entry.home) {
    const { path } = await stageRows(entry, staged, control)
    await createDatabaseOfRows(splitLines(Bun.file(path).stream()), staged.locate(''))
  } else {
    const onBytes = (copied: number, total: number) => control.onProgress?.('copying', copied / total)
    await copyDatabase(locationOf(entry), staged.file, { onBytes, signal: control.signal, isSynced: true })
  }
  const contents = await listContentsOfFile(staged.file)
  const files = await copyContents(from, hold, { tenant: as, contents, staged, control })
  control.onProgress?.('preparing')
  const omittedSecrets = withoutSecrets ? await listSecretNames(staged.file) : []
  const lost = await prepareStagedDatabase(staged, from, clone, {
    secrets: withoutSecrets ? 'dropped' : 'kept',
    isDetached: true,
  })
  await serveStagedDatabase(clone, staged, { event: 'tenant-cloned', from, metadata: { from } })
  const lostSecrets = withoutSecrets ? 0 : lost
  return { tenant: as, from, files, lostSecrets, omittedSecrets, ms: Math.round(performance.now() - startedAt) }
}

/** Returns what the secrets of a copy are for, such as "connection secretKey". */
async function listSecretNames(path: string): Promise<string[]> {
  const rows = await queryDatabaseFile(path, 'select distinct purpose, name from sealed order by purpose, name')
  return rows.map(([purpose, name]) => `${purpose} ${name}`.trim())
}
