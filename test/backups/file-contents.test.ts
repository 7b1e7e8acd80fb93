import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { findBackup, findLatest } from '../../src/backups/backup-list'
import { cloneTenant } from '../../src/backups/clone'
import { holdContents } from '../../src/backups/contents/content-hold'
import { openContentStore } from '../../src/backups/contents/content-store'
import { createEncryption } from '../../src/backups/encryption'
import { restoreTenant } from '../../src/backups/restore'
import { openTarget } from '../../src/backups/targets'
import { createS3Target } from '../../src/backups/targets/s3'
import { backUpTenant } from '../../src/backups/tenant-backup'
import { config } from '../../src/config'
import { HOUR_MS, moveClock, now } from '../../src/core/clock'
import { removeUnusedContents } from '../../src/files/contents'
import { findMissingContents } from '../../src/files/missing-contents'
import { files as filesTable } from '../../src/files/tables'
import { tenantFolder } from '../../src/tenancy/databases'
import { deleteTenant, getTenant } from '../../src/tenancy/tenants'
import { startS3Server } from '../fakes/s3-server'
import { fileClient, listStored, sha256Of } from '../files/fixtures'
import { readMetricsText } from '../metrics-text'
import { recordLog } from '../recorded-log'
import { errorOf } from '../rejections'
import { readFilesOf, uploadFiles } from './file-fixtures'
import { backUpToFolder, createTenantWithThings, findRecord, freshId, freshTarget } from './fixtures'

setDefaultTimeout(60_000)

const secrets = {}
const contentsIn = (to: string, id: string) => readdirSync(join(to, id, 'contents')).sort()
const SOME = { 'a.txt': 'the first', 'b.txt': 'the second', 'copy of a.txt': 'the first' }

const backUp = async (id: string, to: string, passphrase?: string) =>
  backUpTenant(await findRecord(id), openTarget(to), await createEncryption(passphrase, []))

test('a backup has each content once, names it by its hash, and says how many it has', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, SOME)
  const { to, made } = await backUpToFolder(own.id)
  expect(made.files).toEqual({ count: 2, bytes: 19, added: 2, missing: [] })
  expect(contentsIn(to, own.id)).toEqual([sha256Of('the first'), sha256Of('the second')].sort())
  const manifest = JSON.parse(readFileSync(join(made.place, 'manifest.json'), 'utf8'))
  expect(manifest.contents).toMatchObject({ count: 2, bytes: 19 })
})

test('a second backup stores only the contents that are new', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, SOME)
  const { to } = await backUpToFolder(own.id)
  await uploadFiles(own, { 'c.txt': 'the third' })
  expect((await backUp(own.id, to)).files).toMatchObject({ count: 3, added: 1 })
  expect((await backUp(own.id, to)).files).toMatchObject({ count: 3, added: 0 })
})

for (const passphrase of [undefined, 'a long passphrase'])
  test(`contents that are torn or changed in ${passphrase ? 'an encrypted' : 'a plain'} target are stored again, and told`, async () => {
    const own = await createTenantWithThings()
    await uploadFiles(own, SOME)
    const { to } = await backUpToFolder(own.id, passphrase)
    const [torn, changed] = contentsIn(to, own.id).map((name) => join(to, own.id, 'contents', name)) as [string, string]
    writeFileSync(torn, readFileSync(torn).subarray(0, 5))
    const bytes = readFileSync(changed)
    bytes[bytes.length - 3]! ^= 0xff
    writeFileSync(changed, bytes)
    using recorded = recordLog()
    expect((await backUp(own.id, to, passphrase)).files).toMatchObject({ count: 2, added: 0, mended: 2, missing: [] })
    expect(recorded.find('backup-contents-mended')).toMatchObject([{ tenant: own.id, contents: 2 }])
    const metrics = await readMetricsText()
    expect(metrics).toMatch(/^atoll_faults_total\{fault="backup-contents-mended"\} [1-9]/m)
    const { files } = await backUp(own.id, to, passphrase)
    expect([files.count, files.mended]).toEqual([2, undefined])
    const as = freshId()
    const restored = await restoreTenant(await findBackup(join(to, own.id)), { as, secrets: { passphrase } })
    expect(restored.files).toEqual({ count: 2, missing: [] })
  })

test('a content that was torn on the disk when it was backed up is stored once it is whole again', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, SOME)
  const hash = sha256Of('the first')
  const path = join(tenantFolder(own.id), 'files', hash.slice(0, 2), hash)
  writeFileSync(path, 'the')
  await using s3 = await startS3Server('backups')
  const access = {
    endpoint: s3.env.S3_ENDPOINT,
    accessKeyId: s3.env.S3_ACCESS_KEY_ID,
    secretAccessKey: s3.env.S3_SECRET_ACCESS_KEY,
  }
  const target = createS3Target('s3://backups/atoll', access)
  const record = await findRecord(own.id)
  expect((await backUpTenant(record, target, undefined)).files).toMatchObject({ count: 1, missing: ['a.txt'] })
  expect(await target.list(`${own.id}/contents`)).toEqual([sha256Of('the second')])
  writeFileSync(path, 'the first')
  expect((await backUpTenant(record, target, undefined)).files).toMatchObject({ count: 2, added: 1, missing: [] })
  const restored = await restoreTenant((await findLatest(target, own.id))!, { as: freshId(), secrets })
  expect(restored.files).toEqual({ count: 2, missing: [] })
})

for (const passphrase of [undefined, 'a long passphrase'])
  test(`a copy that is restored from ${passphrase ? 'an encrypted' : 'a plain'} backup has the contents of files`, async () => {
    const own = await createTenantWithThings()
    await uploadFiles(own, SOME)
    const { backup, made } = await backUpToFolder(own.id, passphrase)
    for (const found of [backup, await findBackup(join(made.place, '..'))]) {
      const as = freshId()
      const restored = await restoreTenant(found, { as, secrets: { passphrase } })
      expect(restored.files).toEqual({ count: 2, missing: [] })
      expect(await readFilesOf(as, own.users.admin)).toEqual(SOME)
    }
  })

test('the contents of encrypted backups tell neither what they are nor their hashes, and are stored once', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, SOME)
  const to = freshTarget()
  const first = await backUp(own.id, to, 'a long passphrase')
  const second = await backUp(own.id, to, 'a long passphrase')
  expect([first.files.added, second.files.added]).toEqual([2, 0])
  const stored = contentsIn(to, own.id)
  expect(stored).toHaveLength(2)
  const everything = [
    ...readdirSync(to, { recursive: true }).map(String),
    ...stored.map((name) => readFileSync(join(to, own.id, 'contents', name), 'latin1')),
    ...['manifest.json'].map((name) => readFileSync(join(second.place, name), 'utf8')),
    new TextDecoder().decode(await Bun.zstdDecompress(readFileSync(join(second.place, 'contents.txt.zst')))),
  ].join('\n')
  for (const hidden of ['the first', sha256Of('the first'), sha256Of('the second')])
    expect(everything).not.toContain(hidden)
  // Both backups can be read, though each run has a key of its own.
  rmSync(first.place, { recursive: true })
  const as = freshId()
  await restoreTenant(await findBackup(second.place), { as, secrets: { passphrase: 'a long passphrase' } })
  expect(await readFilesOf(as, own.users.admin)).toEqual(SOME)
  // Who has the next passphrase only must not read what was stored for the former one, and the other way round.
  expect((await backUp(own.id, to, 'another passphrase')).files.added).toBe(2)
})

test('contents that are missing or damaged in a backup are told, and the others are restored', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, { ...SOME, 'c.txt': 'the third', 'd.txt': 'the fourth' })
  const { to, backup } = await backUpToFolder(own.id)
  const pathOf = (content: string) => join(to, own.id, 'contents', sha256Of(content))
  rmSync(pathOf('the first'))
  writeFileSync(pathOf('the second'), 'the seconX')
  writeFileSync(pathOf('the third'), 'the third, and a lot that does not belong to it')
  const as = freshId()
  const { files } = await restoreTenant(backup, { as, secrets })
  expect({ ...files, missing: files.missing.sort() }).toEqual({ count: 1, missing: ['a.txt', 'b.txt', 'c.txt'] })
  expect(await readFilesOf(as, own.users.admin)).toEqual({
    'a.txt': 404,
    'b.txt': 404,
    'c.txt': 404,
    'copy of a.txt': 404,
    'd.txt': 'the fourth',
  })
})

test('a content that the store lacks is told by the backup, which has the others', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, SOME)
  await openContentStore()().remove(own.id, sha256Of('the second'))
  const { made } = await backUpToFolder(own.id)
  expect(made.files).toMatchObject({ count: 1, missing: ['b.txt'] })
})

test('a content whose bytes changed on the disk never gets into a backup', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, { 'a.txt': 'the first' })
  const draft = join(freshTarget(), 'draft')
  writeFileSync(draft, 'something')
  await openContentStore()().put(own.id, sha256Of('the first'), draft)
  const { to, made } = await backUpToFolder(own.id)
  expect(made.files).toMatchObject({ count: 0, missing: ['a.txt'] })
  expect(contentsIn(to, own.id)).toEqual([])
})

test('a tenant that is replaced by its backup gets contents back that it lost, and keeps those that it has', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, SOME)
  const { to, backup } = await backUpToFolder(own.id)
  await openContentStore()().remove(own.id, sha256Of('the first'))
  await uploadFiles(own, { 'later.txt': 'later' })
  rmSync(join(to, own.id, 'contents', sha256Of('the second')))
  const { files } = await restoreTenant(backup, { mayReplace: true, secrets })
  expect(files).toEqual({ count: 2, missing: [] })
  expect(await readFilesOf(own.id, own.users.admin)).toEqual(SOME)
  expect(readdirSync(join(config.ATOLL_TENANTS, '.staging'))).toEqual([])
})

test('a deleted tenant is restored with its files', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, SOME)
  const { backup } = await backUpToFolder(own.id)
  await deleteTenant(own.id)
  await restoreTenant(backup, { secrets })
  expect(await readFilesOf(own.id, own.users.admin)).toEqual(SOME)
})

test('a backup whose rows name a path instead of a hash is refused', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, { 'a.txt': 'the first' })
  await (await getTenant(own.id)).write(async (tx) => {
    await tx.query("insert into file_contents (sha256, size, claimed, removing) values ('../../../outside', 5, 0, 0)")
    await tx.update(filesTable).set({ sha256: '../../../outside' }).where(eq(filesTable.name, 'a.txt'))
  })
  const client = fileClient(own, own.tokens.admin)
  const [file] = (await (await client.send('GET', '/files')).json()) as { url: string }[]
  expect((await client.send('GET', file!.url.slice('/api'.length))).status).toBe(404)
  expect(await errorOf(cloneTenant(own.id, freshId()))).toMatchObject({ code: 'BACKUP_DAMAGED' })
})

test('a clone has the contents, and a file that is deleted in one of both stays in the other one', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, SOME)
  const as = freshId()
  expect((await cloneTenant(own.id, as)).files).toEqual({ count: 2, missing: [] })
  await openContentStore()().remove(own.id, sha256Of('the first'))
  expect(await readFilesOf(as, own.users.admin)).toEqual(SOME)
  expect(listStored(as)).toHaveLength(2)
})

test('a content that nobody needs any more is removed only when no copy of the database is being made', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, SOME)
  const tenant = await getTenant(own.id)
  const client = fileClient(own, own.tokens.admin)
  for (const { _id } of (await (await client.send('GET', '/files')).json()) as { _id: string }[])
    await client.send('DELETE', `/files/${_id}`)
  moveClock(now() + 2 * HOUR_MS)
  const removeUnused = () =>
    removeUnusedContents({ ...tenant, token: 1, signal: new AbortController().signal } as never)
  try {
    const [first, second] = [await holdContents(await findRecord(own.id)), await holdContents(await findRecord(own.id))]
    await removeUnused()
    await first[Symbol.asyncDispose]()
    await removeUnused()
    expect(listStored(own.id)).toHaveLength(2)
    await second[Symbol.asyncDispose]()
    await removeUnused()
    expect(listStored(own.id)).toEqual([])
  } finally {
    moveClock()
  }
})

test.skipIf(!!config.ATOLL_DATABASE_URL)(
  'a claim on contents writes nothing to the database of its tenant, whose log may be shipped',
  async () => {
    const own = await createTenantWithThings()
    await uploadFiles(own, SOME)
    using database = new Database(join(tenantFolder(own.id), 'data.db'), { readonly: true })
    const readVersion = () => database.query('pragma data_version').values()
    const before = readVersion()
    await using hold = await holdContents(await findRecord(own.id))
    await hold.renew()
    expect(readVersion()).toEqual(before)
  },
)

test('findMissingContents names the files whose content the store lacks', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, SOME)
  const tenant = await getTenant(own.id)
  expect(await findMissingContents(tenant)).toEqual([])
  await openContentStore()().remove(own.id, sha256Of('the first'))
  expect(await findMissingContents(tenant)).toEqual(['a.txt'])
})
