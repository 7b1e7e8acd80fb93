import { afterEach, describe, expect, test } from 'bun:test'
import { config } from '../../src/config'
import { handleRequest } from '../../src/gateway'
import { checkOperatorPage } from '../../src/operations/admin/page-host'
import { setHosts } from '../../src/tenancy/tenants'
import { readMetricsText } from '../metrics-text'
import { INDEX, packTar, siteClient } from '../sites/fixtures'
import { createTestTenant } from '../test-tenant'

const open = async (origin: string, path = '/admin/operator/tenants') => {
  const response = await handleRequest(new Request(`${origin}${path}`, { headers: { host: new URL(origin).host } }))
  return {
    status: response.status,
    opener: response.headers.get('cross-origin-opener-policy'),
    text: await response.text(),
  }
}

describe("the operator's page", () => {
  afterEach(() => {
    config.ATOLL_PUBLIC_HOSTS = ''
  })

  test('the page of the operator is at loopback names, apart from other windows, and at no host of a tenant', async () => {
    const t = await createTestTenant()
    const own = await open('http://localhost:3000')
    expect([own.status, own.opener]).toEqual([200, 'same-origin'])
    expect(own.text).toContain('data-operator')
    for (const origin of [`http://${t.id}.test`, 'http://unknown.example']) {
      const { status, text } = await open(origin)
      expect([status, JSON.parse(text).code]).toEqual([404, 'OPERATOR_PAGE_ELSEWHERE'])
    }
    const metrics = await readMetricsText()
    expect(metrics).toMatch(/^atoll_http_requests_total\{.*status="404".*\} [1-9]/m)
    const admin = await open(`http://${t.id}.test`, '/admin')
    expect([admin.status, admin.opener]).toEqual([200, null])
    expect(admin.text).not.toContain('data-operator')
  })

  test('the page is at the hosts of ATOLL_PUBLIC_HOSTS only, where that is set', async () => {
    config.ATOLL_PUBLIC_HOSTS = 'atoll.example.com'
    expect((await open('https://atoll.example.com')).status).toBe(200)
    expect((await open('http://localhost')).status).toBe(404)
  })

  test('the page is at a loopback name of a tenant, as of a demo, until the tenant has a site', async () => {
    const t = await createTestTenant()
    const host = `${t.id}.localhost`
    await setHosts(t.id, [`${t.id}.test`, host])
    const origin = `http://${host}`
    expect((await open(origin)).status).toBe(200)
    const { deploy } = siteClient(t)
    expect((await deploy(await packTar(INDEX))).status).toBe(201)
    const { status, text } = await open(origin)
    expect([status, JSON.parse(text).code]).toEqual([404, 'OPERATOR_PAGE_ELSEWHERE'])
  })

  test('doctor names the site of a tenant that keeps the page away, until that site is gone', async () => {
    const t = await createTestTenant()
    const host = `${t.id}.test`
    config.ATOLL_PUBLIC_HOSTS = host
    expect(await checkOperatorPage()).toEqual([])
    const { deploy } = siteClient(t)
    expect((await deploy(await packTar(INDEX))).status).toBe(201)
    expect(await checkOperatorPage()).toEqual([
      {
        check: `operator's page at ${host}`,
        ok: true,
        message: expect.stringContaining(`the site of "${t.id}" is at ${host}`),
      },
    ])
    expect((await t.as('admin').delete('/sites')).status).toBe(200)
    expect(await checkOperatorPage()).toEqual([])
  })
})
