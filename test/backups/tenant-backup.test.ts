import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { generateIdentity, identityToRecipient } from 'age-encryption'
import { findBackup, listBackups } from '../../src/backups/backup-list'
import { backUp } from '../../src/backups/backups'
import { cloneTenant } from '../../src/backups/clone'
import { createEncryption } from '../../src/backups/encryption'
import { restoreTenant } from '../../src/backups/restore'
import { openTarget } from '../../src/backups/targets'
import { backUpTenant } from '../../src/backups/tenant-backup'
import { config } from '../../src/config'
import { resolveConnection } from '../../src/connections/resolver'
import { DAY_MS, moveClock, now } from '../../src/core/clock'
import { getTenantInfo, isRegistered } from '../../src/tenancy/tenant-list'
import { getTenant } from '../../src/tenancy/tenants'
import { createSignedInClient } from '../accounts/session-fixtures'
import { errorOf } from '../rejections'
import {
  backUpToFolder,
  changeManifest,
  createClientOf,
  createTenantWithThings,
  damageData,
  findRecord,
  freshId,
  freshTarget,
} from './fixtures'

setDefaultTimeout(60_000)

const isOnPostgres = !!config.ATOLL_DATABASE_URL
const secrets = {}

test('a backup is a folder with a manifest that names its schema, tenant, time, rows and checksums', async () => {
  const { id } = await createTenantWithThings()
  const { made } = await backUpToFolder(id)
  expect(made).toMatchObject({ tenant: id, bytes: expect.any(Number), encrypted: false })
  const manifest = JSON.parse(readFileSync(join(made.place, 'manifest.json'), 'utf8'))
  expect(manifest).toMatchObject({ format: 1, kind: 'tenant', tenant: id, created: made.created, encryption: 'none' })
  expect(manifest.rows).toMatchObject({ entities: 25, users: 4, sealed: 1 })
  expect(manifest.readBy).toEqual(isOnPostgres ? ['postgres'] : ['bun:sqlite', 'better-sqlite3'])
  const [file] = manifest.files
  const stored = readFileSync(join(made.place, file.name))
  expect(file).toMatchObject({ bytes: stored.length, sha256: new Bun.SHA256().update(stored).digest('hex') })
  const content = Buffer.from(await Bun.zstdDecompress(stored))
  expect(file.content).toEqual({ bytes: content.length, sha256: new Bun.SHA256().update(content).digest('hex') })
})

test('a restored copy has the data and the secrets of the tenant, and no host, session or token of it', async () => {
  const own = await createTenantWithThings()
  const session = await createSignedInClient(own, 'user')
  const { backup } = await backUpToFolder(own.id)
  const as = freshId()
  expect(await restoreTenant(backup, { as, secrets })).toMatchObject({ tenant: as, lostSecrets: 0 })
  expect((await getTenantInfo(as)).hosts).toEqual([])
  const copy = await createClientOf(as, own.users.admin)
  const { body: things, headers } = await copy.get(`${own.path}?$count=true`)
  expect([things[0].name, headers.get('x-total-count')]).toEqual(['thing 24 ✓', '25'])
  const { authentication } = await resolveConnection(await getTenant(as), own.connection, 'stripe')
  expect(authentication).toMatchObject({ secretKey: 'sk_live_1' })
  expect((await session.get('/me')).status).toBe(200)
  expect((await own.anonymous.get('/me', { tenant: as, 'x-api-key': own.tokens.admin })).status).toBe(401)
  const counts = await (await getTenant(as)).db.query('select count(*) from sessions')
  expect(Number(counts[0]![0])).toBe(0)
})

test('a tenant that is replaced by its backup keeps its hosts and tokens, and has the data of then', async () => {
  const own = await createTenantWithThings()
  const { backup } = await backUpToFolder(own.id)
  const added = await own.as('user').post(own.path, { name: 'added later' })
  expect(added.status).toBe(201)
  expect(await errorOf(restoreTenant(backup, { secrets }))).toMatchObject({ status: 409, code: 'TENANT_EXISTS' })
  const { trash } = await restoreTenant(backup, { mayReplace: true, secrets })
  expect(!!trash && existsSync(join(trash, 'data.db'))).toBe(!isOnPostgres)
  const { headers } = await own.as('user').get(`${own.path}?$count=true`)
  expect(headers.get('x-total-count')).toBe('25')
  expect((await own.as('user').post(own.path, { name: 'written after' })).status).toBe(201)
  expect(readdirSync(join(config.ATOLL_TENANTS, '.staging'))).toEqual([])
})

test('a clone has the data of the tenant as it is now, and works apart from it', async () => {
  const own = await createTenantWithThings()
  const as = freshId()
  expect(await cloneTenant(own.id, as)).toMatchObject({ tenant: as, from: own.id, lostSecrets: 0 })
  const clone = await createClientOf(as, own.users.user)
  await clone.post(own.path, { name: 'only in the clone' })
  expect((await clone.get(`${own.path}?$count=true`)).headers.get('x-total-count')).toBe('26')
  expect((await own.as('user').get(`${own.path}?$count=true`)).headers.get('x-total-count')).toBe('25')
  expect(await errorOf(cloneTenant(own.id, as))).toMatchObject({ code: 'TENANT_EXISTS' })
  expect(await errorOf(cloneTenant(freshId(), freshId()))).toMatchObject({ code: 'TENANT_NOT_FOUND' })
})

test('an encrypted backup contains no readable data, and only its passphrase restores it', async () => {
  const { id } = await createTenantWithThings()
  const { made, backup } = await backUpToFolder(id, 'a long passphrase')
  for (const name of readdirSync(made.place)) {
    const text = readFileSync(join(made.place, name)).toString('latin1')
    expect(name === 'manifest.json' || text.startsWith('age-encryption.org/v1')).toBe(true)
    expect(text).not.toContain('thing 1')
  }
  const as = freshId()
  for (const wrong of [{}, { passphrase: 'another passphrase' }, { identities: [await generateIdentity()] }])
    expect(await errorOf(restoreTenant(backup, { as, secrets: wrong }))).toMatchObject({ code: 'WRONG_BACKUP_KEY' })
  expect(await isRegistered(as)).toBe(false)
  expect(await restoreTenant(backup, { as, secrets: { passphrase: 'a long passphrase' } })).toMatchObject({
    tenant: as,
  })
})

test('a backup for an age recipient is restored with the identity', async () => {
  const { id } = await createTenantWithThings()
  const identity = await generateIdentity()
  const encryption = await createEncryption(undefined, [await identityToRecipient(identity)])
  const { place } = await backUpTenant(await findRecord(id), openTarget(freshTarget()), encryption)
  const [backup, as] = [await findBackup(place), freshId()]
  expect((await errorOf(restoreTenant(backup, { as, secrets: { passphrase: 'x' } }))).message).toContain(
    '--identity-file',
  )
  expect(await restoreTenant(backup, { as, secrets: { identities: [identity] } })).toMatchObject({ tenant: as })
  expect((await errorOf(createEncryption(undefined, ['age1nonsense']))).message).toContain('is not an age recipient')
})

test('a torn, changed or incomplete backup is refused with a sentence, and changes nothing', async () => {
  const { id } = await createTenantWithThings()
  const restore = async (place: string) => restoreTenant(await findBackup(place), { mayReplace: true, secrets })
  const faults: [(place: string) => void, string][] = [
    [damageData, 'BACKUP_DAMAGED'],
    [(place) => truncateSync(join(place, dataFileOf(place)), 1_000), 'BACKUP_DAMAGED'],
    [(place) => rmSync(join(place, dataFileOf(place))), 'BACKUP_DAMAGED'],
    [(place) => rmSync(join(place, 'manifest.json')), 'BACKUP_NOT_FOUND'],
    [(place) => truncateSync(join(place, 'manifest.json'), 100), 'BACKUP_DAMAGED'],
    [(place) => changeManifest(place, (manifest) => ({ ...manifest, schemaVersion: 999 })), 'BACKUP_TOO_NEW'],
    [(place) => changeManifest(place, (manifest) => ({ ...manifest, format: 2 })), 'BACKUP_TOO_NEW'],
  ]
  const { uid } = await findRecord(id)
  for (const [fault, code] of faults) {
    const { made } = await backUpToFolder(id)
    fault(made.place)
    expect(await errorOf(restore(made.place))).toMatchObject({ code })
  }
  expect((await findRecord(id)).uid).toBe(uid)
  expect(readdirSync(join(config.ATOLL_TENANTS, '.staging'))).toEqual([])
})

const dataFileOf = (place: string) => readdirSync(place).find((name) => /^(data|rows)/.test(name))!

test('secrets of another installation are refused, or left out and told', async () => {
  const { id } = await createTenantWithThings()
  const { made } = await backUpToFolder(id)
  changeManifest(made.place, (manifest) => ({ ...manifest, keys: ['0'.repeat(64)] }))
  const [backup, as] = [await findBackup(made.place), freshId()]
  expect(await errorOf(restoreTenant(backup, { as, secrets }))).toMatchObject({ code: 'OTHER_KEYS' })
  expect(await restoreTenant(backup, { as, dropSecrets: true, secrets })).toMatchObject({ lostSecrets: 1 })
})

test('findBackup returns the latest backup until a time, and ignores a folder without a manifest', async () => {
  const { id } = await createTenantWithThings()
  const to = freshTarget()
  const target = openTarget(to)
  const first = await backUpTenant(await findRecord(id), target, undefined)
  const between = Date.now()
  const second = await backUpTenant(await findRecord(id), target, undefined)
  const third = await backUpTenant(await findRecord(id), target, undefined)
  rmSync(join(third.place, 'manifest.json'))
  expect((await findBackup(join(to, id))).place).toBe(second.place)
  expect((await findBackup(join(to, id), between)).place).toBe(first.place)
  // Its copy may have writes from after it began.
  expect(await errorOf(findBackup(join(to, id), Date.parse(first.created)))).toMatchObject({ code: 'BACKUP_NOT_FOUND' })
  expect((await listBackups(target, id)).map(({ place }) => place)).toEqual([second.place, first.place])
  expect(await errorOf(findBackup(join(to, id), 0))).toMatchObject({ code: 'BACKUP_NOT_FOUND' })
  expect(await errorOf(findBackup(join(to, 'nobody')))).toMatchObject({ code: 'BACKUP_NOT_FOUND' })
})

test('findBackup prefers backups of the past to those that were made while the clock was ahead', async () => {
  const { id } = await createTenantWithThings()
  const to = freshTarget()
  const back = async () => backUpTenant(await findRecord(id), openTarget(to), undefined)
  moveClock(now() + 365 * DAY_MS)
  const ahead = await back()
  moveClock()
  expect((await findBackup(join(to, id))).place).toBe(ahead.place)
  const right = await back()
  expect((await findBackup(join(to, id))).place).toBe(right.place)
})

test('a backup that fails is told and recorded, and leaves nothing behind', async () => {
  const { id } = await createTenantWithThings()
  // A file is in the way of the folder.
  const to = join(freshTarget(), 'file')
  await Bun.write(to, 'x')
  const { backups, failed } = await backUp([id], openTarget(to), undefined)
  expect(backups).toEqual([])
  expect(failed).toEqual([
    { tenant: id, code: 'BACKUP_TARGET_FAILED', message: expect.stringContaining('cannot be written') },
  ])
  expect(await errorOf(backUp([freshId()], openTarget(to), undefined))).toMatchObject({ code: 'TENANT_NOT_FOUND' })
})
