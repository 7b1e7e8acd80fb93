import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { findBackup } from '../../src/backups/backup-list'
import { createEncryption } from '../../src/backups/encryption'
import { openTarget } from '../../src/backups/targets'
import { backUpTenant } from '../../src/backups/tenant-backup'
import { registry } from '../../src/tenancy/registry'
import { tenants } from '../../src/tenancy/tables'
import { getTenant } from '../../src/tenancy/tenants'
import { createThingsFixture, importThings } from '../entities/fixtures'
import { createTempFolder } from '../temp-folder'
import { apiClient } from '../test-tenant'

/** A folder for backups, which is removed with the others of the run. */
export const freshTarget = () => createTempFolder('backups')

export const findRecord = async (id: string) =>
  (await registry.db.select().from(tenants).where(eq(tenants.id, id)).get())!

/** Creates a tenant with 25 things and a connection with a secret, whose id is `connection`. */
export async function createTenantWithThings() {
  const own = await createThingsFixture([{ key: 'name', type: 'text' }])
  await importThings(
    own,
    Array.from({ length: 25 }, (_, number) => ({ name: `thing ${number} ✓` })),
  )
  const connection = { name: 'Cards', kind: 'stripe', authentication: { secretKey: 'sk_live_1' } }
  const created = await own.as('admin').post('/integration-sources', connection)
  return { ...own, connection: created.body._id as string }
}

/** Backs a tenant up into a new folder, and returns the backup. */
export async function backUpToFolder(id: string, passphrase?: string) {
  const to = freshTarget()
  const made = await backUpTenant(await findRecord(id), openTarget(to), await createEncryption(passphrase, []))
  return { to, made, backup: await findBackup(made.place) }
}

/** Returns a client of a tenant that has no host, with a new API token of one of its users. */
export async function createClientOf(id: string, user: string) {
  const { token } = await issueApiToken(await getTenant(id), user, { nickname: 'test' })
  return apiClient('http://localhost', { tenant: id, 'x-api-key': token })
}

export const freshId = () => `r${crypto.randomUUID()}`

/** Changes one byte in the middle of the stored data. */
export function damageData(place: string) {
  const name = readdirSync(place).find((name) => /^(data|rows)/.test(name))!
  const bytes = readFileSync(join(place, name))
  bytes[bytes.length >> 1]! ^= 0xff
  writeFileSync(join(place, name), bytes)
}

/** Changes the manifest of a backup. */
export function changeManifest(place: string, change: (manifest: Record<string, unknown>) => object) {
  const path = join(place, 'manifest.json')
  writeFileSync(path, JSON.stringify(change(JSON.parse(readFileSync(path, 'utf8')))))
}
