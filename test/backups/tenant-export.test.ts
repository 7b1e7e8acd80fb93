import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, globSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { openContentStore } from '../../src/backups/contents/content-store'
import { exportTenant, importTenant } from '../../src/backups/tenant-export'
import { config } from '../../src/config'
import { resolveConnection } from '../../src/connections/resolver'
import { setMinimumKey } from '../../src/platform/vault/key-rotation'
import { openSecret, sealSecret } from '../../src/platform/vault/vault'
import { getTenant } from '../../src/tenancy/tenants'
import { sha256Of } from '../files/fixtures'
import { errorOf } from '../rejections'
import { readFilesOf, uploadFiles } from './file-fixtures'
import { createClientOf, createTenantWithThings, freshId, freshTarget } from './fixtures'

setDefaultTimeout(60_000)

async function exportToFile(id: string, passphrase?: string) {
  const file = join(freshTarget(), 'tenant.atoll')
  const summary = await exportTenant(id, passphrase, (content) => Bun.write(file, new Response(content)))
  return { file, summary }
}
const importFile = (file: string, as: string, passphrase?: string) =>
  importTenant(Bun.file(file).stream(), as, passphrase)

test('an export is a stream of lines, which another tenant is created from', async () => {
  const own = await createTenantWithThings()
  const { file, summary } = await exportToFile(own.id)
  expect(summary).toMatchObject({ tenant: own.id, omittedSecrets: 1, encrypted: false })
  const [header, ...lines] = new TextDecoder()
    .decode(await Bun.zstdDecompress(await Bun.file(file).bytes()))
    .trim()
    .split('\n')
  expect(JSON.parse(header!)).toMatchObject({ format: 1, schemaVersion: expect.any(Number) })
  expect(JSON.parse(lines.at(-1)!)).toMatchObject({ rows: { entities: 25, users: 4, sealed: 0 } })
  const as = freshId()
  expect(await importFile(file, as)).toMatchObject({ tenant: as, rows: summary.rows })
  const copy = await createClientOf(as, own.users.admin)
  expect((await copy.get(`${own.path}?$count=true`)).headers.get('x-total-count')).toBe('25')
  expect((await copy.get(`/integration-sources/${own.connection}`)).body.name).toBe('Cards')
  expect(await errorOf(importFile(file, as))).toMatchObject({ code: 'TENANT_EXISTS' })
})

test('an export with a passphrase has the secrets, and only the passphrase opens it', async () => {
  const own = await createTenantWithThings()
  const { file, summary } = await exportToFile(own.id, 'a long passphrase')
  expect(summary).toMatchObject({ omittedSecrets: 0, encrypted: true })
  expect(Buffer.from(await Bun.file(file).bytes()).toString('latin1')).toStartWith('age-encryption.org/v1')
  const as = freshId()
  for (const wrong of [undefined, 'another passphrase'])
    expect(await errorOf(importFile(file, as, wrong))).toMatchObject({ code: 'WRONG_BACKUP_KEY' })
  await importFile(file, as, 'a long passphrase')
  const { authentication } = await resolveConnection(await getTenant(as), own.connection, 'stripe')
  expect(authentication).toMatchObject({ secretKey: 'sk_live_1' })
})

test('an export and an import never store a readable secret, not even one that takes several pages', async () => {
  const own = await createTenantWithThings()
  const ref = { purpose: 'test', owner: 'somebody', name: 'long' }
  const secret = 'readable '.repeat(5_000)
  await sealSecret(await getTenant(own.id), ref, secret)
  const listReadable = (pattern: string) =>
    globSync(pattern, { cwd: config.ATOLL_TENANTS }).filter((path) =>
      readFileSync(join(config.ATOLL_TENANTS, path)).includes('readable readable'),
    )
  const file = join(freshTarget(), 'tenant.atoll')
  const write = async (content: ReadableStream<Uint8Array>) => {
    expect(globSync('.staging/*/rows.jsonl', { cwd: config.ATOLL_TENANTS })).not.toBeEmpty()
    expect(listReadable('.staging/*/*')).toEqual([])
    await Bun.write(file, new Response(content))
  }
  await exportTenant(own.id, 'a long passphrase', write)
  const as = freshId()
  await importFile(file, as, 'a long passphrase')
  expect(await openSecret(await getTenant(as), ref)).toBe(secret)
  expect(existsSync(join(config.ATOLL_TENANTS, as))).toBe(!config.ATOLL_DATABASE_URL)
  expect(listReadable(`${as}/*`)).toEqual([])
})

test('an imported tenant whose keys were rotated at its origin takes new secrets', async () => {
  const own = await createTenantWithThings()
  const tenant = await getTenant(own.id)
  await tenant.write((tx) => setMinimumKey(tx, 1_000))
  const { file } = await exportToFile(own.id, 'a long passphrase')
  const as = freshId()
  await importFile(file, as, 'a long passphrase')
  const ref = { purpose: 'test', owner: 'somebody', name: 'new' }
  await sealSecret(await getTenant(as), ref, 'a secret')
  expect(await openSecret(await getTenant(as), ref)).toBe('a secret')
})

test('a torn export and a file that is none are refused, and no tenant is created', async () => {
  const own = await createTenantWithThings()
  const { file } = await exportToFile(own.id)
  const as = freshId()
  truncateSync(file, Bun.file(file).size - 100)
  expect(await errorOf(importFile(file, as))).toMatchObject({ code: 'BACKUP_DAMAGED' })
  for (const text of ['', 'no export at all', '{"format":1}\n']) {
    await Bun.write(file, text)
    expect(await errorOf(importFile(file, as))).toMatchObject({ code: 'BACKUP_DAMAGED' })
    await Bun.write(file, await Bun.zstdCompress(text))
    expect(await errorOf(importFile(file, as))).toMatchObject({ code: 'BACKUP_DAMAGED' })
  }
  expect(await errorOf(getTenant(as))).toMatchObject({ code: 'TENANT_NOT_FOUND' })
})

test('an import of what no export compresses so well is refused before it is decompressed whole', async () => {
  const as = freshId()
  const bomb = await Bun.zstdCompress(new Uint8Array(100 << 20))
  const refused = await errorOf(importTenant(new Blob([bomb]).stream(), as, undefined))
  expect(refused).toMatchObject({ status: 409, code: 'BACKUP_DAMAGED', cause: { message: 'It is a bomb.' } })
  expect(await errorOf(getTenant(as))).toMatchObject({ code: 'TENANT_NOT_FOUND' })
})

test('an export has the contents of files, with and without a passphrase', async () => {
  const own = await createTenantWithThings()
  const large = 'a line that is repeated\n{"rows": {}}\n'.repeat(100_000)
  const contents = { 'a.txt': 'the first', 'b.txt': 'the second', 'copy of a.txt': 'the first', 'large.txt': large }
  await uploadFiles(own, contents)
  for (const passphrase of [undefined, 'a long passphrase']) {
    const { file, summary } = await exportToFile(own.id, passphrase)
    expect(summary.files).toEqual({ count: 3, missing: [] })
    const as = freshId()
    expect((await importFile(file, as, passphrase)).files).toEqual({ count: 3, missing: [] })
    expect(await readFilesOf(as, own.users.admin)).toEqual(contents)
  }
})

test('a content that the store lacks is told by the export and by the import', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, { 'a.txt': 'the first', 'b.txt': 'the second' })
  await openContentStore()().remove(own.id, sha256Of('the first'))
  const { file, summary } = await exportToFile(own.id)
  expect(summary.files).toEqual({ count: 1, missing: ['a.txt'] })
  const as = freshId()
  expect((await importFile(file, as)).files).toEqual({ count: 1, missing: ['a.txt'] })
  expect(await readFilesOf(as, own.users.admin)).toEqual({ 'a.txt': 404, 'b.txt': 'the second' })
})

/** Changes the text of an export, in which contents are as they are. */
async function changeExport(file: string, change: (text: string) => string) {
  const text = Buffer.from(await Bun.zstdDecompress(await Bun.file(file).bytes())).toString('latin1')
  await Bun.write(file, await Bun.zstdCompress(Buffer.from(change(text), 'latin1')))
}

test('contents in an export whose bytes do not fit their hash or that no file has are not taken in', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, { 'a.txt': 'the first', 'b.txt': 'the second' })
  const { file } = await exportToFile(own.id)
  const foreign = sha256Of('foreign')
  const toPart = (text: string) => `{"content":"${foreign}","bytes":${text.length}}\n${text ? `${text}\n` : ''}`
  await changeExport(file, (text) => text.replace('\nthe first\n', '\nthe f1rst\n') + toPart('foreign') + toPart(''))
  const as = freshId()
  expect((await importFile(file, as)).files).toEqual({ count: 1, missing: ['a.txt'] })
  expect(await openContentStore()().has(as, foreign)).toBeFalse()
  expect(await readFilesOf(as, own.users.admin)).toEqual({ 'a.txt': 404, 'b.txt': 'the second' })
})

test('a content in an export that is larger than its file says does not fill the disk', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, { 'a.txt': 'the first' })
  const { file } = await exportToFile(own.id)
  const part = `{"content":"${sha256Of('the first')}","bytes":1000000}\n${'x'.repeat(1_000_000)}\n`
  await changeExport(file, (text) => text.replace(/(?=\{"content":)/, part.repeat(20)))
  const as = freshId()
  expect((await importFile(file, as)).files).toEqual({ count: 0, missing: ['a.txt'] })
})

test('an export with climbing names, senseless sizes or a torn content is refused, and leaves nothing', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, { 'a.txt': 'the first' })
  const hash = sha256Of('the first')
  const faults: ((text: string) => string)[] = [
    (text) => text.replaceAll(`"content":"${hash}"`, '"content":"../../../outside"'),
    (text) => text.replaceAll(hash, `../..${hash.slice(5)}`),
    (text) => text.replace(/"bytes":9/, '"bytes":-9'),
    (text) => text.replace(/"bytes":9/, '"bytes":1e300'),
    (text) => text.replace(/"bytes":9/, '"bytes":8'),
    (text) => text.slice(0, text.lastIndexOf('{"content"')),
    (text) => `${text}{"content"`,
    (text) => `${text}${'x'.repeat(1_000)}`,
  ]
  for (const fault of faults) {
    const { file } = await exportToFile(own.id)
    await changeExport(file, fault)
    const as = freshId()
    expect(await errorOf(importFile(file, as))).toMatchObject({ code: 'BACKUP_DAMAGED' })
    expect(existsSync(join(config.ATOLL_TENANTS, as))).toBeFalse()
  }
  expect(globSync('.staging/*', { cwd: config.ATOLL_TENANTS })).toEqual([])
})
