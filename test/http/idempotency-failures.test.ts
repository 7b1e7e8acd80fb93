import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { identifyCaller } from '../../src/accounts/caller-identity'
import { workspaces } from '../../src/accounts/memberships/tables'
import { config } from '../../src/config'
import { now } from '../../src/core/clock'
import { sha256 } from '../../src/core/crypto'
import { attachClaim, Claim, withClaim } from '../../src/http/idempotency/claim'
import { executeOnce } from '../../src/http/idempotency/execution'
import { HashedRequest } from '../../src/http/idempotency/hashed-request'
import { Busy } from '../../src/storage/errors'
import { registry } from '../../src/tenancy/registry'
import { errorOf } from '../rejections'
import { createTestTenant, statusAndCode } from '../test-tenant'

const key = new Uint8Array(32)
const limits = { ...config }
afterEach(() => void Object.assign(config, limits))

describe('a claim', () => {
  test('a claim whose first write comes after the end of the request is acquired, but never renewed', async () => {
    const { tenant, origin } = await createTestTenant()
    const request = new Request(origin)
    const claim = new Claim('stream', () => 'fingerprint')
    attachClaim(request, claim)
    const timers = spyOn(globalThis, 'setInterval')
    try {
      await withClaim(request, tenant).write(async () => {})
      claim.stopRenewal()
      const renewals = timers.mock.calls.length
      expect(renewals).toBeGreaterThan(0)
      const late = new Claim('late stream', () => 'fingerprint')
      attachClaim(request, late)
      late.stopRenewal()
      await withClaim(request, tenant).write(async () => {})
      expect([late.held, timers.mock.calls.length]).toEqual([true, renewals])
    } finally {
      timers.mockRestore()
    }
  })

  test('a request that loses its claim while it reads its body gets 409 IDEMPOTENCY_IN_PROGRESS, not 422', async () => {
    const { tenant, origin, tokens } = await createTestTenant()
    const path = '/api/blueprints/things/entities/import'
    const headers = { host: new URL(origin).host, 'x-api-key': tokens.admin }
    const body = new ReadableStream({ pull: (controller) => controller.enqueue(new TextEncoder().encode('{}')) })
    const request = new Request(origin + path, { method: 'POST', headers, body })
    const name = sha256([(await identifyCaller(request, tenant)).name, path, 'k'].join('\n'))
    /** Reads a part of the body, then writes, after another server has acquired the claim. */
    const work = async (hashed: Request) => {
      await hashed.body!.getReader().read()
      await tenant.write((tx) =>
        tx.query(
          `insert into idempotency_keys (name, attempt, fingerprint, busy, expires)
           values (?, 'another server', 'its body', (select now from clock) + 60000, ?)`,
          [name, now() + 60_000],
        ),
      )
      return withClaim(hashed, tenant)
        .write(async () => Response.json({}))
        .catch((error) => Response.json({}, { status: error.status }))
    }
    const answer = executeOnce(request, 'k', work, identifyCaller)
    expect(await errorOf(answer)).toMatchObject({ status: 409, code: 'IDEMPOTENCY_IN_PROGRESS' })
  })
})

describe('a caller with an Idempotency-Key', () => {
  test('a caller whose credential is invalid counts as a guest, but one whose credential cannot be read gets 503 BUSY', async () => {
    const { tenant, origin, tokens } = await createTestTenant()
    const identify = (token: string, of = tenant) =>
      identifyCaller(new Request(origin, { headers: { 'x-api-key': token } }), of)
    expect(await identify(tokens.user)).toMatchObject({ isGuest: false })
    expect(await identify(`atl_${'0'.repeat(64)}`)).toMatchObject({ isGuest: true })
    const failing = {
      ...tenant,
      remoteVersion: () => {
        throw new Busy()
      },
    }
    expect(await errorOf(identify(tokens.user, failing))).toBeInstanceOf(Busy)
  })

  test('a request whose tenant cannot be found for the moment gets 503 BUSY and is not executed without its key', async () => {
    const { tenant, as, anonymous } = await createTestTenant()
    const key = { 'idempotency-key': 'k' }
    expect(statusAndCode(await anonymous.with({ tenant: 'nobody' }).post('/workspaces', { name: 'x' }, key))).toEqual([
      404,
      'TENANT_NOT_FOUND',
    ])
    const spies = [
      spyOn(registry, 'remoteVersion').mockReturnValueOnce(-1),
      spyOn(registry.db, 'query').mockRejectedValueOnce(new Busy()),
    ]
    const rejected = await as('user').post('/workspaces', { name: 'x' }, key)
    for (const spy of spies) spy.mockRestore()
    expect(statusAndCode(rejected)).toEqual([503, 'BUSY'])
    expect(await tenant.db.$count(workspaces)).toBe(0)
    expect((await as('user').post('/workspaces', { name: 'x' }, key)).status).toBe(201)
  })
})

test('a repeated body may be as large as the largest body that any route accepts', async () => {
  const read = (length: number) =>
    new HashedRequest(new Request('http://x.test/', { method: 'POST', body: 'x'.repeat(length) }), key).read()
  Object.assign(config, { ATOLL_BODY_LIMIT: 1024, ATOLL_AI_BODY_LIMIT: 1024, ATOLL_UPLOAD_LIMIT: 1024 })
  for (const limit of [
    'ATOLL_BODY_LIMIT',
    'ATOLL_AI_BODY_LIMIT',
    'ATOLL_UPLOAD_LIMIT',
    'ATOLL_IMPORT_LIMIT',
  ] as const) {
    Object.assign(config, { ATOLL_IMPORT_LIMIT: 1024, [limit]: 2048 })
    expect(await read(2048), limit).toMatch(/^[0-9a-f]{64}$/)
    expect(await errorOf(read(2049)), limit).toMatchObject({ status: 413, code: 'BODY_TOO_LARGE' })
    Object.assign(config, { [limit]: 1024 })
  }
})
