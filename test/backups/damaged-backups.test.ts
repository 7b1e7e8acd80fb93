import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { findBackup, withLatestSound } from '../../src/backups/backup-list'
import { backUp } from '../../src/backups/backups'
import { restoreTenant } from '../../src/backups/restore'
import { findTargetProblem } from '../../src/backups/target-check'
import { claimTarget } from '../../src/backups/target-owner'
import { openTarget } from '../../src/backups/targets'
import { backUpTenant } from '../../src/backups/tenant-backup'
import { verifyTarget } from '../../src/backups/verify'
import { moveClock, now } from '../../src/core/clock'
import { isRegistered } from '../../src/tenancy/tenant-list'
import { createTempFolder, createTenantByCli, runAtoll } from '../fakes/cli'
import { sha256Of } from '../files/fixtures'
import { errorOf } from '../rejections'
import { uploadFiles } from './file-fixtures'
import {
  backUpToFolder,
  changeManifest,
  createTenantWithThings,
  damageData,
  findRecord,
  freshId,
  freshTarget,
} from './fixtures'

setDefaultTimeout(60_000)

const secrets = {}
const restore = async (place: string) => {
  const as = freshId()
  const failure = await restoreTenant(await findBackup(place), { as, secrets }).catch((error) => error)
  return { failure, isServed: await isRegistered(as) }
}

/** Replaces the database in a backup, with the hashes that fit. */
async function replaceDatabase(place: string, change: (bytes: Buffer) => Buffer) {
  const path = join(place, 'data.db.zst')
  const content = change(Buffer.from(await Bun.zstdDecompress(readFileSync(path))))
  const stored = Buffer.from(await Bun.zstdCompress(content))
  writeFileSync(path, stored)
  const digest = (bytes: Buffer) => ({ bytes: bytes.length, sha256: sha256Of(bytes) })
  changeManifest(place, (manifest) => {
    const [data, ...others] = manifest.files as { name: string }[]
    return { ...manifest, files: [{ ...data, ...digest(stored), content: digest(content) }, ...others] }
  })
}

test('a backup with another number of rows than its manifest says is refused by name', async () => {
  const { id } = await createTenantWithThings()
  const { made } = await backUpToFolder(id)
  changeManifest(made.place, ({ rows, ...manifest }) => ({
    ...manifest,
    rows: { ...(rows as Record<string, number>), entities: (rows as Record<string, number>).entities! + 1 },
  }))
  const { failure, isServed } = await restore(made.place)
  expect(failure).toMatchObject({ status: 409, code: 'BACKUP_DAMAGED', message: expect.stringContaining(made.place) })
  expect(isServed).toBe(false)
})

test.skipIf(!!process.env.ATOLL_DATABASE_URL)(
  'a backup whose database is torn is named as what is damaged',
  async () => {
    const { id } = await createTenantWithThings()
    const { made } = await backUpToFolder(id)
    await replaceDatabase(made.place, (bytes) => {
      const torn = Buffer.from(bytes)
      torn.fill(0x5a, 8 * 4_096, 60 * 4_096)
      return torn
    })
    const { failure, isServed } = await restore(made.place)
    const hasRegistry = String(failure.message).includes('registry')
    expect(failure).toMatchObject({
      code: 'BACKUP_DAMAGED',
      message: expect.stringContaining(`The backup ${made.place}`),
    })
    expect([isServed, hasRegistry]).toEqual([false, false])
  },
)

test('a restore of the latest backup steps over torn ones, and says which', async () => {
  const { id } = await createTenantWithThings()
  const { to, made } = await backUpToFolder(id)
  const record = await findRecord(id)
  const torn = [
    await backUpTenant(record, openTarget(to), undefined),
    await backUpTenant(record, openTarget(to), undefined),
  ]
  damageData(torn[0]!.place)
  writeFileSync(join(torn[1]!.place, 'manifest.json'), '{')
  const first = await findBackup(join(to, id))
  const { result, skipped } = await withLatestSound(first, undefined, (backup) =>
    restoreTenant(backup, { as: freshId(), secrets }),
  )
  expect([result.created, skipped.toSorted()]).toEqual([made.created, torn.map(({ place }) => place).toSorted()])
  expect(await errorOf(restoreTenant(await findBackup(torn[0]!.place), { as: freshId(), secrets }))).toMatchObject({
    code: 'BACKUP_DAMAGED',
  })
})

test('the latest backup is the one that was made last, also after a clock that was ahead', async () => {
  const { id } = await createTenantWithThings()
  const to = freshTarget()
  const record = await findRecord(id)
  const places: string[] = []
  for (const aheadMs of [0, 400 * 86_400_000, 0, -3_600_000]) {
    moveClock(Date.now() + aheadMs)
    places.push((await backUpTenant(record, openTarget(to), undefined)).place)
    moveClock()
    expect((await findBackup(join(to, id))).place).toBe(places.at(-1)!)
  }
  expect((await findBackup(join(to, id), now())).place).toBe(places.at(-1)!)
})

test('a target is verified: whole, with a damaged file, a torn content, and a missing one', async () => {
  const own = await createTenantWithThings()
  await uploadFiles(own, { 'a.txt': 'the first', 'b.txt': 'the second' })
  const { to, made } = await backUpToFolder(own.id)
  const verify = async () => (await verifyTarget(openTarget(to)))[0]!
  expect(await verify()).toEqual({ tenant: own.id, backups: 1, problems: [] })
  const content = join(to, own.id, 'contents', sha256Of('the first'))
  writeFileSync(content, 'the fir')
  expect((await verify()).problems).toEqual([expect.stringContaining(`${content} is torn or was changed`)])
  rmSync(content)
  expect((await verify()).problems).toEqual([expect.stringContaining('lacks 1 of its contents')])
  damageData(made.place)
  expect((await verify()).problems).toContainEqual(expect.stringMatching(/(data|rows)\S+ is torn or was changed/))
})

test('a target belongs to the installation that used it first', async () => {
  const to = freshTarget()
  await claimTarget(openTarget(to))
  await claimTarget(openTarget(to))
  const path = join(to, 'installation.json')
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), id: 'another', name: 'host:/data' }))
  expect(await errorOf(claimTarget(openTarget(to)))).toMatchObject({
    code: 'BACKUP_TARGET_TAKEN',
    message: expect.stringContaining('host:/data'),
  })
})

test('a target lacks the backups of a tenant of which only the log goes on', async () => {
  const [{ id }, to] = [await createTenantWithThings(), freshTarget()]
  const target = openTarget(to)
  await claimTarget(target)
  const { backups } = await backUp([id], target, undefined)
  expect(await findTargetProblem(target)).toBeUndefined()
  rmSync(backups[0]!.place, { recursive: true })
  mkdirSync(join(to, id, 'log'), { recursive: true })
  expect(await findTargetProblem(target)).toContain(`lacks the backups of ${id}, `)
})

test('a server, a backup and doctor of another installation are refused at a target, with the name of its owner', async () => {
  const [owner, other] = [{ at: createTempFolder() }, { at: createTempFolder() }]
  for (const at of [owner, other]) await createTenantByCli(at, 'acme')
  const to = freshTarget()
  expect((await runAtoll(`backup acme --to ${to}`, owner)).code).toBe(0)
  expect((await runAtoll(`backup verify ${to} --json`, owner)).code).toBe(0)
  const name = `${hostname()}:${join(owner.at, 'tenants')}`
  const served = await runAtoll('serve', { ...other, env: { ATOLL_BACKUP_TO: to } })
  expect([served.code, served.err]).toEqual([2, expect.stringContaining(`another installation, ${name}, since`)])
  const refused = await runAtoll(`backup acme --to ${to} --json`, other)
  const { code, message } = JSON.parse(refused.err.trim().split('\n').at(-1)!)
  expect([refused.code, code, message]).toEqual([1, 'BACKUP_TARGET_TAKEN', expect.stringContaining(name)])
  const doctor = await runAtoll('doctor --json', { ...other, env: { ATOLL_BACKUP_TO: to } })
  expect(doctor.json.checks).toContainEqual({
    ...{ check: 'backup target', ok: false },
    message: expect.stringContaining(name),
  })
  const [backup] = readdirSync(join(to, 'acme')).filter((entry) => /^\d/.test(entry))
  damageData(join(to, 'acme', backup!))
  const verified = await runAtoll(`backup verify ${to}`, owner)
  expect([verified.code, verified.out]).toEqual([1, expect.stringContaining('PROBLEM acme')])
})
