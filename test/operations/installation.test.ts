import { describe, expect, test } from 'bun:test'
import { version } from '../../package.json'
import { config } from '../../src/config'
import { setHosts } from '../../src/tenancy/tenants'
import { createTestTenant, statusAndCode } from '../test-tenant'

describe('GET /api/installation', () => {
  test('tells admins what the operator decided, with the hosts of their tenant only', async () => {
    const { as, tenant } = await createTestTenant()
    const other = await createTestTenant()
    await setHosts(tenant.tenant, [`${tenant.tenant}.test`, 'shop.example'])
    await setHosts(other.tenant.tenant, ['other.example'])
    expect((await as('admin').get('/installation')).body).toEqual({
      version,
      hosts: ['shop.example', `${tenant.tenant}.test`],
      hostClaims: 'off',
      mail: { isSent: false, from: 'Atoll <atoll@localhost>' },
      sessionDays: 30,
      accessTokenSeconds: 900,
      eventDays: 90,
      rateLimits: {
        guests: { reads: 600, writes: 300, costly: 120 },
        users: { reads: 6_000, writes: 3_000, costly: 1_200 },
      },
      databaseBytes: config.ATOLL_DATABASE_URL ? null : expect.any(Number),
      outgoingHeld: false,
    })
  })

  test('users get 403 and guests 401', async () => {
    const { as, anonymous } = await createTestTenant()
    expect(statusAndCode(await as('user').get('/installation'))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await anonymous.get('/installation'))).toEqual([401, 'UNAUTHENTICATED'])
  })
})
