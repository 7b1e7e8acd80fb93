import { expect, setDefaultTimeout, test } from 'bun:test'
import { truncateSync } from 'node:fs'
import { join } from 'node:path'
import { exportTenant, importTenant } from '../../src/backups/tenant-export'
import { resolveConnection } from '../../src/connections/resolver'
import { getTenant } from '../../src/tenancy/tenants'
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
  await expect(importFile(file, as)).rejects.toMatchObject({ code: 'TENANT_EXISTS' })
})

test('an export with a passphrase has the secrets, and only the passphrase opens it', async () => {
  const own = await createTenantWithThings()
  const { file, summary } = await exportToFile(own.id, 'a long passphrase')
  expect(summary).toMatchObject({ omittedSecrets: 0, encrypted: true })
  expect(Buffer.from(await Bun.file(file).bytes()).toString('latin1')).toStartWith('age-encryption.org/v1')
  const as = freshId()
  for (const wrong of [undefined, 'another passphrase'])
    await expect(importFile(file, as, wrong)).rejects.toMatchObject({ code: 'WRONG_BACKUP_KEY' })
  await importFile(file, as, 'a long passphrase')
  const { authentication } = await resolveConnection(await getTenant(as), own.connection, 'stripe')
  expect(authentication).toMatchObject({ secretKey: 'sk_live_1' })
})

test('a torn export and a file that is none are refused, and no tenant is created', async () => {
  const own = await createTenantWithThings()
  const { file } = await exportToFile(own.id)
  const as = freshId()
  truncateSync(file, Bun.file(file).size - 100)
  await expect(importFile(file, as)).rejects.toMatchObject({ code: 'BACKUP_DAMAGED' })
  for (const text of ['', 'no export at all', '{"format":1}\n']) {
    await Bun.write(file, text)
    await expect(importFile(file, as)).rejects.toMatchObject({ code: 'BACKUP_DAMAGED' })
    await Bun.write(file, await Bun.zstdCompress(text))
    await expect(importFile(file, as)).rejects.toMatchObject({ code: 'BACKUP_DAMAGED' })
  }
  await expect(getTenant(as)).rejects.toMatchObject({ code: 'TENANT_NOT_FOUND' })
})
