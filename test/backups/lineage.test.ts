import { expect, test } from 'bun:test'
import { findBackup } from '../../src/backups/backup-list'
import { findOwnBackups } from '../../src/backups/lineage'
import { restoreTenant } from '../../src/backups/restore'
import { openTarget } from '../../src/backups/targets'
import { backUpTenant } from '../../src/backups/tenant-backup'
import { createTenant, deleteTenant } from '../../src/tenancy/tenants'
import { createTestTenant } from '../test-tenant'
import { findRecord, freshTarget } from './fixtures'

/** Backs a tenant up, and returns the backup. */
async function backUp(id: string) {
  const { place } = await backUpTenant(await findRecord(id), openTarget(freshTarget()), undefined)
  return findBackup(place)
}

/** Returns which of the backups are those of the present tenant. */
async function areOwn(id: string, backups: Awaited<ReturnType<typeof backUp>>[]) {
  const isOwn = (await findOwnBackups(id))!
  return backups.map(({ manifest }) => isOwn(manifest))
}

test('the backups of a tenant stay its own after restores in place, and those made in between as well', async () => {
  const { id } = await createTestTenant()
  const first = await backUp(id)
  await restoreTenant(first, { mayReplace: true, secrets: {} })
  const second = await backUp(id)
  await restoreTenant(first, { mayReplace: true, secrets: {} })
  expect(await areOwn(id, [first, second])).toEqual([true, true])
  const { uid } = await findRecord(id)
  expect((await backUp(id)).manifest.uids).toEqual([uid, ...second.manifest.uids!])
})

test('a tenant that was made anew under an id owns no backup of the deleted one, unless it says not whose it is', async () => {
  const { id } = await createTestTenant()
  const backup = await backUp(id)
  await deleteTenant(id)
  expect(await findOwnBackups(id)).toBeUndefined()
  await createTenant(id)
  const { uids: _, ...earlierForm } = backup.manifest
  expect(await areOwn(id, [backup, await backUp(id), { ...backup, manifest: earlierForm }])).toEqual([
    ...[false, true, true],
  ])
})

test('a deleted tenant that was restored owns the backups from before, and a copy under another id does not', async () => {
  const { id } = await createTestTenant()
  const backup = await backUp(id)
  await deleteTenant(id)
  await restoreTenant(backup, { secrets: {} })
  const copy = `${id.slice(0, 30)}-copy`
  await restoreTenant(backup, { as: copy, secrets: {} })
  expect([await areOwn(id, [backup]), await areOwn(copy, [backup])]).toEqual([[true], [false]])
})
