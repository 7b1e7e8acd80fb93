import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { eq } from 'drizzle-orm'
import { tenantMigrations } from '../../migrations'
import { config } from '../../src/config'
import { checkUnknownFolders } from '../../src/operations/checks'
import { adoptTenant, listUnknownFolders } from '../../src/tenancy/adoption'
import { databases, hasTenantFolder, tenantFolder } from '../../src/tenancy/databases'
import { pauseTenant } from '../../src/tenancy/pending-restores'
import { registry } from '../../src/tenancy/registry'
import { prepareRestoredTenant, serveStagedDatabase } from '../../src/tenancy/restored-tenants'
import { createStagedFolder } from '../../src/tenancy/staged-folder'
import { tenants } from '../../src/tenancy/tables'
import { listAbandonedFolders, recordFolder } from '../../src/tenancy/tenant-folders'
import { createTenant, deleteTenant, getTenant, getTenantAnyStatus } from '../../src/tenancy/tenants'
import { findRecord } from '../backups/fixtures'
import { createTempFolder, runAtoll } from '../fakes/cli'
import { readMetricsText } from '../metrics-text'
import { recordLog } from '../recorded-log'
import { errorOf } from '../rejections'
import { createTestTenant } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(60_000)

test('a restore in place of a tenant that was deleted meanwhile is refused, and leaves no folder', async () => {
  const { id } = await createTestTenant()
  const destination = await prepareRestoredTenant(id, true)
  using staged = createStagedFolder(0)
  const copy = await databases.openTenantCopy(staged.locate(destination.uid), tenantMigrations)
  await copy.runExclusive(({ markServing }) => markServing())
  await copy.finish()
  await copy.close()
  await deleteTenant(id)
  const serving = serveStagedDatabase(destination, staged, { event: 'tenant-restored', metadata: {} })
  expect(await errorOf(serving)).toMatchObject({ status: 409, code: 'TENANT_CHANGED' })
  expect(await errorOf(getTenant(id))).toMatchObject({ code: 'TENANT_NOT_FOUND' })
  expect(hasTenantFolder(id)).toBe(false)
})

describe('a tenant whose data are being replaced', () => {
  const pause = async (id: string) => {
    const [before, staged] = [(await findRecord(id))!, createStagedFolder(0)]
    const paused = await pauseTenant(before, Bun.randomUUIDv7(), staged.name)
    return { paused, staged }
  }

  test('answers 503 RESTORING with Retry-After, can be neither deleted nor restored again, and comes back', async () => {
    const t = await createTestTenant()
    const { paused, staged } = await pause(t.id)
    const refused = await t.as('admin').get('/blueprints')
    expect([refused.status, refused.body.code, refused.headers.get('retry-after')]).toEqual([503, 'RESTORING', '2'])
    const { ATOLL_TENANTS, ATOLL_DATABASE_URL } = config
    const env = { ATOLL_TENANTS: resolve(ATOLL_TENANTS), ATOLL_DATABASE_URL }
    const { json } = await runAtoll('doctor --json', { at: createTempFolder(), env })
    expect(json.checks).toContainEqual({
      ...{ check: `tenant ${t.id}`, ok: false },
      message: expect.stringContaining('are being restored'),
    })
    expect(await errorOf(deleteTenant(t.id))).toMatchObject({ code: 'RESTORING' })
    expect(await errorOf(getTenantAnyStatus(t.id))).toMatchObject({ code: 'RESTORING' })
    expect(await errorOf(pauseTenant((await findRecord(t.id))!, 'another', 'another'))).toMatchObject({
      code: expect.stringMatching(/^(RESTORING|TENANT_MOVING)$/),
    })
    await paused[Symbol.asyncDispose]()
    staged[Symbol.dispose]()
    await waitUntil(async () => (await t.as('admin').get('/blueprints')).status === 200)
    expect((await findRecord(t.id))!.restoring).toBeNull()
  })

  test('can be restored again at once when the process of its restore has died', async () => {
    const t = await createTestTenant()
    const { paused: dead, staged } = await pause(t.id)
    await dead[Symbol.asyncDispose]()
    const { paused, staged: next } = await pause(t.id)
    expect((await findRecord(t.id))!.restoring).toEqual(paused.restore)
    await paused[Symbol.asyncDispose]()
    for (const folder of [staged, next]) folder[Symbol.dispose]()
    await waitUntil(async () => (await t.as('admin').get('/blueprints')).status === 200)
  })
})

describe('a folder whose deletion was interrupted', () => {
  test('a folder of an interrupted deletion goes to the trash when its id is used again, and is not offered for adoption', async () => {
    const id = `t${crypto.randomUUID()}`
    await createTenant(id)
    const { uid } = (await findRecord(id))!
    await databases.release({ tenant: id, file: `${id}/data.db`, identity: uid })
    await registry.write(async (tx) => {
      await tx.delete(tenants).where(eq(tenants.id, id))
      await recordFolder(tx, { id, uid })
    })
    mkdirSync(tenantFolder(id), { recursive: true })
    expect(await listUnknownFolders()).not.toContain(id)
    expect(await checkUnknownFolders()).toContainEqual({
      check: `folder ${id}`,
      ok: false,
      message: expect.stringContaining('was being deleted'),
    })
    expect(await errorOf(adoptTenant(id))).toMatchObject({ status: 409, code: 'TENANT_DELETED' })
    using recorded = recordLog()
    await createTenant(id)
    expect(recorded.find('abandoned-folder')).toMatchObject([{ tenant: id, trash: expect.any(String) }])
    const metrics = await readMetricsText()
    expect(metrics).toMatch(/^atoll_faults_total\{fault="abandoned-folder"\} [1-9]/m)
    expect((await findRecord(id))!.uid).not.toBe(uid)
    expect(await listAbandonedFolders()).not.toContain(id)
  })
})
