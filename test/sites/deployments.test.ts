import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { HOUR_MS, moveClock, now } from '../../src/core/clock'
import { removeUnusedContents } from '../../src/files/contents'
import { setQuotas } from '../../src/limits/quotas'
import { siteDeployments } from '../../src/sites/tables'
import { ID, TIME } from '../expectations'
import { listStored, sha256Of } from '../files/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { INDEX, packTar, siteClient } from './fixtures'

setDefaultTimeout(60_000)

const page = (text: string) => packTar(['index.html', text])

describe('deployments', () => {
  test('an admin deploys a tar archive, gets the deployment, and guests see the site at the host', async () => {
    const tenant = await createTestTenant()
    const site = siteClient(tenant)
    const { status, body } = await site.deploy(await packTar(INDEX, ['about.html', 'About']), '?spa=true')
    expect(status).toBe(201)
    expect(body).toEqual({
      ...{ _id: ID, files: 2, bytes: INDEX.toString().length - 'index.html,'.length + 5, spa: true },
      ...{ created: TIME, by: tenant.users.admin, active: true, urls: [`${tenant.origin}/`] },
    })
    expect(await site.read('/')).toEqual([200, '<!doctype html><title>Home</title>'])
    expect((await tenant.as('admin').get('/sites')).body).toEqual([body])
  })

  test('an admin deploys the gzip of an archive, whatever its content type says', async () => {
    const site = siteClient(await createTestTenant())
    const body = new Uint8Array(gzipSync(await page('zipped')))
    for (const type of ['application/gzip', 'application/x-tar', 'application/octet-stream'])
      expect((await site.deploy(body, '', type)).status).toBe(201)
    expect(await site.read('/')).toEqual([200, 'zipped'])
  })

  test('a new deployment replaces the former one whole, and a rollback brings back the one that was active before', async () => {
    const tenant = await createTestTenant()
    const site = siteClient(tenant)
    const admin = tenant.as('admin')
    const ids: string[] = []
    for (const name of ['a', 'b', 'c'])
      ids.push((await site.deploy(await packTar(['index.html', name], [`${name}.html`, name]))).body._id)
    const [a, b, c] = ids
    expect([await site.read('/'), (await site.open('/a')).status]).toEqual([[200, 'c'], 404])
    const back = await admin.post('/sites/rollback')
    expect([back.status, back.body._id, back.body.active]).toEqual([200, b, true])
    expect(await site.read('/')).toEqual([200, 'b'])
    const { body: d } = await site.deploy(await page('d'))
    // What was rolled back is not what a rollback brings back.
    expect((await admin.post('/sites/rollback')).body._id).toBe(b)
    expect((await admin.post('/sites/rollback')).body._id).toBe(a)
    expect(statusAndCode(await admin.post('/sites/rollback'))).toEqual([409, 'NO_FORMER_DEPLOYMENT'])
    expect((await admin.post(`/sites/rollback?to=${c}`)).body).toMatchObject({ _id: c, active: true })
    expect(await site.read('/')).toEqual([200, 'c'])
    expect(statusAndCode(await admin.post('/sites/rollback?to=x'))).toEqual([404, 'DEPLOYMENT_NOT_FOUND'])
    const { body: list } = await admin.get('/sites')
    expect(list.map(({ _id, active }: { _id: string; active: boolean }) => [_id, active])).toEqual([
      ...[
        [d._id, false],
        [c, true],
        [b, false],
      ], // the newest first
      [a, false],
    ])
  })

  test('a removed site is gone with its deployments, and the server answers at its host again', async () => {
    const tenant = await createTestTenant()
    const [site, admin] = [siteClient(tenant), tenant.as('admin')]
    const before = await site.read('/', { accept: 'text/html' })
    await site.deploy(await page('x'))
    expect((await admin.delete('/sites')).body).toEqual({ success: true })
    expect((await admin.get('/sites')).body).toEqual([])
    expect(await site.read('/', { accept: 'text/html' })).toEqual(before)
    expect(before[1]).toContain('/admin')
    expect(statusAndCode(await admin.delete('/sites'))).toEqual([404, 'SITE_NOT_FOUND'])
    expect(statusAndCode(await admin.post('/sites/rollback'))).toEqual([404, 'SITE_NOT_FOUND'])
  })

  test('ten deployments are kept, and contents that only older ones had are removed by the job', async () => {
    const tenant = await createTestTenant()
    const site = siteClient(tenant)
    for (let n = 0; n < 12; n++) await site.deploy(await packTar(['index.html', `page ${n}`], ['same.txt', 'same']))
    expect(await tenant.tenant.db.$count(siteDeployments)).toBe(10)
    expect(listStored(tenant.id)).toHaveLength(13)
    moveClock(now() + 2 * HOUR_MS)
    const lease = { ...tenant.tenant, signal: new AbortController().signal } as never
    await removeUnusedContents(lease).finally(() => moveClock())
    const hashes = [...Array.from({ length: 10 }, (_, n) => `page ${n + 2}`), 'same'].map(sha256Of)
    expect(listStored(tenant.id)).toEqual(hashes.map((hash) => `${hash.slice(0, 2)}/${hash}`).sort())
    expect(await site.read('/')).toEqual([200, 'page 11'])
    await tenant.as('admin').delete('/sites')
    moveClock(now() + 2 * HOUR_MS)
    await removeUnusedContents(lease).finally(() => moveClock())
    expect(listStored(tenant.id)).toEqual([])
  })

  test('contents that are lost from the store are stored again by a deployment of the same files', async () => {
    const tenant = await createTestTenant()
    const site = siteClient(tenant)
    const { contentStore } = await import('../../src/files/stores/index')
    const text = 'x'.repeat(200_000)
    await site.deploy(await packTar(INDEX, ['big.bin', text]))
    await contentStore().remove(tenant.id, sha256Of(text))
    await site.deploy(await packTar(INDEX, ['big.bin', text]))
    expect(await site.read('/big.bin')).toEqual([200, text])
  })

  test('a quota of storage refuses a site that exceeds it, and unchanged files do not count again', async () => {
    const tenant = await createTestTenant()
    const site = siteClient(tenant)
    const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes))
    const files = await packTar(INDEX, ['a.bin', random(60_000)], ['b.bin', random(60_000)])
    expect((await site.deploy(files)).status).toBe(201)
    await setQuotas(tenant.id, { storage: 1 << 30 })
    const { body } = await tenant.as('admin').get('/quotas')
    const used = body.usage.storage as number
    expect(used).toBeGreaterThan(120_000)
    await setQuotas(tenant.id, { storage: used + 150_000 })
    expect((await site.deploy(files)).status).toBe(201)
    const larger = Array.from({ length: 4 }, (_, n) => [`${n}.bin`, random(60_000)] as [string, Uint8Array])
    expect(statusAndCode(await site.deploy(await packTar(INDEX, ...larger)))).toEqual([403, 'QUOTA_EXCEEDED'])
    expect((await tenant.as('admin').get('/sites')).body).toHaveLength(2)
  })
})

describe('access', () => {
  test('only admins and tokens with the scope sites:write deploy, and sites:read lists', async () => {
    const tenant = await createTestTenant()
    const archive = await page('x')
    expect(statusAndCode(await siteClient(tenant, tenant.tokens.user).deploy(archive))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await siteClient(tenant, '').deploy(archive))).toEqual([401, 'UNAUTHENTICATED'])
    const issue = async (user: string, scope: string) =>
      (await issueApiToken(tenant.tenant, user, { nickname: 's', scopes: [scope] })).token
    const { admin, user } = tenant.users
    expect((await siteClient(tenant, await issue(admin, 'files:write')).deploy(archive)).status).toBe(403)
    expect((await siteClient(tenant, await issue(user, 'sites:write')).deploy(archive)).status).toBe(403)
    expect((await siteClient(tenant, await issue(admin, 'sites:write')).deploy(archive)).status).toBe(201)
    const reader = await issue(admin, 'sites:read')
    expect((await siteClient(tenant, reader).deploy(archive)).status).toBe(403)
    expect((await tenant.anonymous.get('/sites', { 'x-api-key': reader })).status).toBe(200)
    expect(statusAndCode(await tenant.as('editor').post('/sites/rollback'))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await tenant.as('user').get('/sites'))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await tenant.as('user').delete('/sites'))).toEqual([403, 'FORBIDDEN'])
  })

  test('the host alone says whose site is shown, and the header tenant does not', async () => {
    const [one, two] = [await createTestTenant(), await createTestTenant()]
    await siteClient(one).deploy(await page('one'))
    await siteClient(two).deploy(await page('two'))
    expect(await siteClient(one).read('/', { tenant: two.id })).toEqual([200, 'one'])
    expect((await two.as('admin').get('/sites')).body[0].by).toBe(two.users.admin)
    const other = await createTestTenant()
    expect((await siteClient(other).read('/', { tenant: one.id }))[1]).not.toBe('one')
  })

  test('the site of a suspended tenant is not shown', async () => {
    const { setStatus } = await import('../../src/tenancy/tenants')
    const tenant = await createTestTenant()
    const site = siteClient(tenant)
    await site.deploy(await page('x'))
    await setStatus(tenant.id, 'suspended')
    const response = await site.open('/')
    expect([response.status, await response.json()]).toEqual([
      403,
      expect.objectContaining({ code: 'TENANT_SUSPENDED' }),
    ])
    await setStatus(tenant.id, 'active')
    expect(await site.read('/')).toEqual([200, 'x'])
  })
})
