import { expect, setDefaultTimeout, test } from 'bun:test'
import { tenantMigrations } from '../../migrations'
import { databases, hasTenantFolder } from '../../src/tenancy/databases'
import { prepareRestoredTenant, serveStagedDatabase } from '../../src/tenancy/restored-tenants'
import { createStagedFolder } from '../../src/tenancy/staged-folder'
import { deleteTenant, getTenant } from '../../src/tenancy/tenants'
import { createTestTenant } from '../test-tenant'

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
  await expect(serving).rejects.toMatchObject({ status: 409, code: 'TENANT_CHANGED' })
  await expect(getTenant(id)).rejects.toMatchObject({ code: 'TENANT_NOT_FOUND' })
  expect(hasTenantFolder(id)).toBe(false)
})
