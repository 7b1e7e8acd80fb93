import { expect, setDefaultTimeout, test } from 'bun:test'
import { cloneTenant } from '../../src/backups/clone'
import { openContentStore } from '../../src/backups/contents/content-store'
import { restoreTenant } from '../../src/backups/restore'
import { findMissingContents } from '../../src/files/missing-contents'
import { getTenant, setHosts } from '../../src/tenancy/tenants'
import { sha256Of } from '../files/fixtures'
import { packTar, siteClient } from '../sites/fixtures'
import { createTestTenant } from '../test-tenant'
import { backUpToFolder, freshId } from './fixtures'

setDefaultTimeout(60_000)

const HOME = 'the home page '.repeat(200)

async function createTenantWithSite() {
  const own = await createTestTenant()
  const { status } = await siteClient(own).deploy(await packTar(['index.html', HOME], ['logo.svg', '<svg/>']))
  expect(status).toBe(201)
  return own
}

/** Opens a page of the site of a tenant, which gets a host. */
async function readPage(id: string, path: string) {
  await setHosts(id, [`${id}.test`])
  return siteClient({ id, origin: `http://${id}.test`, tokens: {} as never }, '').read(path)
}

test('a site is a part of a backup and of a clone', async () => {
  const own = await createTenantWithSite()
  const { backup } = await backUpToFolder(own.id)
  const [restored, cloned] = [freshId(), freshId()]
  expect((await restoreTenant(backup, { as: restored, secrets: {} })).files.missing).toEqual([])
  expect((await cloneTenant(own.id, cloned)).files.missing).toEqual([])
  for (const id of [restored, cloned]) {
    expect(await readPage(id, '/')).toEqual([200, HOME])
    expect(await readPage(id, '/logo.svg')).toEqual([200, '<svg/>'])
  }
})

test('a content of a site that the store lacks is named by the check, a backup, a clone and a restore', async () => {
  const own = await createTenantWithSite()
  const whole = await backUpToFolder(own.id)
  expect(await findMissingContents(await getTenant(own.id))).toEqual([])
  await openContentStore()().remove(own.id, sha256Of(HOME))
  const missing = ['index.html of the site']
  expect(await findMissingContents(await getTenant(own.id))).toEqual(missing)
  const { made, backup } = await backUpToFolder(own.id)
  expect(made.files.missing).toEqual(missing)
  expect((await cloneTenant(own.id, freshId())).files.missing).toEqual(missing)
  expect((await restoreTenant(backup, { as: freshId(), secrets: {} })).files.missing).toEqual(missing)
  expect((await restoreTenant(whole.backup, { mayReplace: true, secrets: {} })).files.missing).toEqual([])
  expect(await findMissingContents(await getTenant(own.id))).toEqual([])
})

test('an encoding of a file of a site that the store lacks is named with its file', async () => {
  const own = await createTenantWithSite()
  const { db } = await getTenant(own.id)
  const [[manifest] = []] = await db.query('select manifest from site_deployments')
  const [{ encodings }] = JSON.parse(String(manifest))
  await openContentStore()().remove(own.id, encodings.br.sha256)
  expect(await findMissingContents(await getTenant(own.id))).toEqual(['index.html (br) of the site'])
})
