// engine: sqlite
import { afterEach, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { listBackups } from '../../src/backups/backup-list'
import { LogShipper } from '../../src/backups/log/log-shipper'
import { openTarget } from '../../src/backups/targets'
import { logOutput } from '../../src/core/log'
import { createTenantWithThings, freshTarget } from './fixtures'

setDefaultTimeout(120_000) // backups are made by other processes

afterEach(() => {
  delete process.env.ATOLL_BACKUP_TO
})

/** Ships the log of a new tenant into a folder. `sync` returns what was stored of it. */
async function createShipping() {
  const to = freshTarget()
  process.env.ATOLL_BACKUP_TO = to // for the processes that make backups
  const shipper = new LogShipper(openTarget(to)).observe()
  const { id, tenant } = await createTenantWithThings()
  const topic = () => crypto.randomUUID()
  return {
    ...{ shipper, to, folder: join(to, id) },
    // The registry and other tenants may be opened meanwhile.
    sync: async () => (await shipper.sync()).filter((path) => path.startsWith(id)),
    isProtected: () => !shipper.state.unprotected.some(({ folder }) => folder === id),
    countBackups: async () => (await listBackups(openTarget(to), id)).length,
    write: () => tenant.write((tx) => tx.query('insert into versions (topic, version) values (?, 0)', [topic()])),
    [Symbol.asyncDispose]: () => shipper.stop(),
  }
}

test('a pass of the log shipper stores what was written, with a backup for the first time', async () => {
  await using shipping = await createShipping()
  const { to, sync, isProtected, countBackups, write } = shipping
  const [first, ...others] = await sync()
  expect([first, others]).toEqual([expect.stringMatching(/\/log\/[^/]+\/00000001-.*\.log$/), []])
  expect(existsSync(join(to, `${first}.zst`))).toBeTrue()
  expect([await countBackups(), isProtected()]).toEqual([1, true])
  expect(await sync()).toEqual([])
  await write()
  expect(await sync()).toEqual([expect.stringContaining('/00000002-')])
  expect([await countBackups(), isProtected()]).toEqual([1, true])
})

test('a log whose target fails is stored by a pass once the target works', async () => {
  await using shipping = await createShipping()
  const { shipper, folder, sync, isProtected, countBackups, write } = shipping
  await sync()
  {
    using errors = spyOn(logOutput, 'write').mockImplementation(() => {})
    renameSync(folder, `${folder}-away`)
    writeFileSync(folder, 'This is no folder.')
    await write()
    expect(await sync()).toEqual([])
    expect([isProtected(), shipper.state.problem]).toEqual([false, expect.stringContaining('not a folder')])
    expect(errors.mock.calls.flat().join()).toContain('LOG_NOT_SHIPPED')
  }
  rmSync(folder)
  renameSync(`${folder}-away`, folder)
  expect(await sync()).toEqual([expect.stringContaining('/00000002-')])
  expect([isProtected(), shipper.state.problem]).toEqual([true, undefined])
  expect(await countBackups()).toBe(1)
})
