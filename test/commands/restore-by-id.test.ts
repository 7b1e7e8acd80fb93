// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder, createTenantByCli, runAtoll } from '../fakes/cli'

setDefaultTimeout(120_000)

const codeOf = ({ err }: { err: string }) => JSON.parse(err.trim().split('\n').at(-1)!).code

test('a restore by id leaves out the backups of a deleted tenant of that id, which can be named themselves', async () => {
  const at = { at: createTempFolder(), env: { ATOLL_BACKUP_TO: 'backups' } }
  await createTenantByCli(at, 'acme')
  const [{ place: deleted }] = (await runAtoll('backup acme --json', at)).json.backups
  expect((await runAtoll('tenant delete acme --yes', at)).code).toBe(0)
  await createTenantByCli(at, 'acme')
  const refused = await runAtoll('restore backups/acme --yes --json', at)
  expect([refused.code, codeOf(refused)]).toEqual([1, 'OTHER_TENANT'])
  expect(refused.err).toContain(deleted)
  const [{ place: own }] = (await runAtoll('backup acme --json', at)).json.backups
  for (const [address, place] of [
    ['backups/acme', own],
    [deleted, deleted],
  ]) {
    const { code, json } = await runAtoll(['restore', address, '--yes', '--json'], at)
    expect([code, json.restored.map((one: { place: string }) => one.place)]).toEqual([0, [place]])
  }
})

test('a restored installation has no data of a tenant that was deleted before its registry was backed up', async () => {
  const at = { at: createTempFolder(), env: { ATOLL_BACKUP_TO: 'backups' } }
  await createTenantByCli(at, 'acme')
  await createTenantByCli(at, 'other')
  expect((await runAtoll('backup acme other --json', at)).code).toBe(0)
  expect((await runAtoll('tenant delete acme --yes', at)).code).toBe(0)
  await createTenantByCli(at, 'acme')
  expect((await runAtoll('backup .installation --json', at)).code).toBe(0)
  const empty = { at: createTempFolder(), env: { ATOLL_BACKUP_TO: `${at.at}/backups` } }
  mkdirSync(join(empty.at, 'tenants'))
  copyFileSync(join(at.at, 'tenants/secrets.json'), join(empty.at, 'tenants/secrets.json'))
  const { code, json } = await runAtoll(['restore', `${at.at}/backups`, '--json'], empty)
  expect([code, json.missing, json.restored.map(({ tenant }: { tenant: string }) => tenant)]).toEqual([
    ...[1, ['acme'], ['other']],
  ])
})
