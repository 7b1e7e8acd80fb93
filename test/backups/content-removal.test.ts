import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findBackup } from '../../src/backups/backup-list'
import { removeExpired } from '../../src/backups/backups'
import { pruneContents } from '../../src/backups/contents/content-removal'
import { createEncryption } from '../../src/backups/encryption'
import { restoreTenant } from '../../src/backups/restore'
import { parseRetention } from '../../src/backups/retention'
import { openTarget } from '../../src/backups/targets'
import type { BackupTarget } from '../../src/backups/targets/backup-target'
import { backUpTenant } from '../../src/backups/tenant-backup'
import { DAY_MS, moveClock, now } from '../../src/core/clock'
import { fileClient, sha256Of } from '../files/fixtures'
import { errorOf } from '../rejections'
import { readFilesOf, uploadFiles } from './file-fixtures'
import { createTenantWithThings, findRecord, freshId, freshTarget } from './fixtures'

setDefaultTimeout(60_000)

const listContents = (to: string, id: string) => readdirSync(join(to, id, 'contents')).sort()

async function backUp(id: string, target: BackupTarget, passphrase?: string) {
  return backUpTenant(await findRecord(id), target, await createEncryption(passphrase, []))
}

/** Creates a tenant with the files a.txt and b.txt. */
async function createTenantWithFiles() {
  const own = await createTenantWithThings()
  await uploadFiles(own, { 'a.txt': 'the first', 'b.txt': 'the second' })
  const deleteFile = async (name: string) => {
    const client = fileClient(own, own.tokens.admin)
    const files = (await (await client.send('GET', '/files')).json()) as { _id: string; name: string }[]
    await client.send('DELETE', `/files/${files.find((file) => file.name === name)!._id}`)
    // The hour in which an unused content is kept is not what these tests are about.
    await (await import('../../src/tenancy/tenants'))
      .getTenant(own.id)
      .then((tenant) =>
        tenant.write((tx) => tx.query('delete from file_contents where sha256 not in (select sha256 from files)')),
      )
  }
  return { ...own, deleteFile }
}

for (const passphrase of [undefined, 'a long passphrase'])
  test(`contents that no kept ${passphrase ? 'encrypted' : 'plain'} backup needs are removed with the old backups`, async () => {
    const own = await createTenantWithFiles()
    const [to, start] = [freshTarget(), now()]
    const target = openTarget(to)
    try {
      await backUp(own.id, target, passphrase)
      await own.deleteFile('a.txt')
      moveClock(start + 3 * DAY_MS)
      await backUp(own.id, target, passphrase)
      expect(await removeExpired(target, parseRetention('daily=2')!)).toEqual([])
      expect(listContents(to, own.id)).toHaveLength(2)
      expect(await removeExpired(target, parseRetention('daily=1')!)).toHaveLength(1)
      expect(listContents(to, own.id)).toHaveLength(1)
    } finally {
      moveClock()
    }
    const as = freshId()
    await restoreTenant(await findBackup(join(to, own.id)), { as, secrets: { passphrase } })
    expect(await readFilesOf(as, own.users.admin)).toEqual({ 'b.txt': 'the second' })
    expect(readdirSync(join(to, own.id, 'pruning'))).toEqual([])
  })

test('a backup that is being made keeps the contents that it found in the target', async () => {
  const own = await createTenantWithFiles()
  const to = freshTarget()
  const target = openTarget(to)
  rmSync((await backUp(own.id, target)).place, { recursive: true })
  let removed = -1
  // The contents are removed after the backup has looked which are there, and before it is complete.
  const pausing: BackupTarget = {
    ...target,
    async listSizes(folder) {
      const sizes = await target.listSizes(folder)
      if (folder.endsWith('/contents') && removed === -1) removed = await pruneContents(target, own.id)
      return sizes
    },
  }
  const { place, files } = await backUp(own.id, pausing)
  expect([removed, files.added]).toEqual([0, 0])
  const as = freshId()
  expect((await restoreTenant(await findBackup(place), { as, secrets: {} })).files.missing).toEqual([])
})

test('a backup that begins while contents are removed waits, and stores what was removed', async () => {
  const own = await createTenantWithFiles()
  const to = freshTarget()
  const target = openTarget(to)
  rmSync((await backUp(own.id, target)).place, { recursive: true })
  let backup: ReturnType<typeof backUp> | undefined
  // The backup begins when the lists have been read, and before the first content is removed.
  const pausing: BackupTarget = {
    ...target,
    async removeFile(path) {
      backup ??= backUp(own.id, target)
      await Bun.sleep(1_000)
      await target.removeFile(path)
    },
  }
  expect(await pruneContents(pausing, own.id)).toBe(2)
  const { place, files } = await backup!
  expect(files).toMatchObject({ count: 2, added: 2 })
  const as = freshId()
  expect((await restoreTenant(await findBackup(place), { as, secrets: {} })).files.missing).toEqual([])
})

test('the mark of a process that died while it removed contents does not stop backups after an hour', async () => {
  const own = await createTenantWithFiles()
  const to = freshTarget()
  const target = openTarget(to)
  await backUp(own.id, target)
  for (const name of ['2020-01-01T00-00-00.000Z', '2999-01-01T00-00-00.000Z', 'nonsense'])
    await Bun.write(join(to, own.id, 'pruning', name), '\n')
  expect((await backUp(own.id, target)).files).toMatchObject({ count: 2, added: 0 })
})

test('a list that cannot be read keeps all contents of its tenant', async () => {
  const own = await createTenantWithFiles()
  const to = freshTarget()
  const target = openTarget(to)
  const { place } = await backUp(own.id, target)
  await own.deleteFile('a.txt')
  await backUp(own.id, target)
  writeFileSync(join(place, 'contents.txt.zst'), 'no list')
  expect(await errorOf(pruneContents(target, own.id))).toMatchObject({ code: 'BACKUP_DAMAGED' })
  expect(listContents(to, own.id)).toContain(sha256Of('the first'))
})
