// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, signIn, startAtoll } from '../fakes/cli'

setDefaultTimeout(60_000)

const token = 'operator-token-of-the-test'
const env = { ATOLL_TEST_CLOCK: 'on', ATOLL_OPERATOR_TOKEN: token }

async function startServer(environment: Record<string, string> = env) {
  const at = { at: createTempFolder(), env: environment }
  await createTenantByCli(at, 'acme')
  const server = await startAtoll(at)
  const post = async (path: string, body: unknown, authorization = `Bearer ${token}`) => {
    const headers = { 'content-type': 'application/json', authorization }
    const response = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return [response.status, await response.json()] as [number, Record<string, unknown>]
  }
  return { server, post }
}

describe('the operator routes', () => {
  test('POST /operator/clock sets the clock that expires sessions, and POST /operator/jobs/run runs due jobs', async () => {
    const { server, post } = await startServer()
    await using _ = server
    const [status, { now }] = await post('/operator/clock', { now: '2031-02-03T04:05:06Z' })
    expect([status, now]).toEqual([200, expect.stringMatching(/^2031-02-03T04:05:/)])
    const me = apiCaller(server.url, await signIn(server.url, 'acme'))
    expect((await me('GET', '/api/me')).status).toBe(200)
    await post('/operator/clock', { now: '2031-02-04T04:05:06Z' })
    expect((await me('GET', '/api/me')).status).toBe(401)
    expect(await post('/operator/jobs/run', { tenant: 'acme' })).toEqual([200, { ran: 0 }])
    expect((await post('/operator/jobs/run', { tenant: 'nobody' }))[1].code).toBe('TENANT_NOT_FOUND')
    expect((await post('/operator/clock', { now: 'tomorrow' }))[1].code).toBe('INVALID_INPUT')
  })

  test('POST /operator routes without the operator token answer 401 UNAUTHENTICATED', async () => {
    const { server, post } = await startServer()
    await using _ = server
    for (const authorization of ['', 'Bearer', 'Bearer x', `Basic ${token}`, `Bearer ${token}x`])
      for (const path of ['/operator/clock', '/operator/jobs/run']) {
        const [status, { code }] = await post(path, { now: 'x' }, authorization)
        expect([status, code]).toEqual([401, 'UNAUTHENTICATED'])
      }
  })

  test('POST /operator/clock answers ROUTE_NOT_FOUND without ATOLL_TEST_CLOCK, and 401 without a configured token', async () => {
    const { server, post } = await startServer({ ATOLL_OPERATOR_TOKEN: token })
    await using _ = server
    expect((await post('/operator/clock', { now: '2031-02-03T04:05:06Z' }))[1].code).toBe('ROUTE_NOT_FOUND')
    const other = await startServer({ ATOLL_TEST_CLOCK: 'on' })
    await using __ = other.server
    expect((await other.post('/operator/clock', { now: '2031-02-03T04:05:06Z' }, 'Bearer '))[0]).toBe(401)
  })

  test('ATOLL_TEST_CLOCK is refused when NODE_ENV is production', async () => {
    const { code, err } = await runAtoll('doctor', { at: createTempFolder(), env: { ...env, NODE_ENV: 'production' } })
    expect(code).not.toBe(0)
    expect(err).toContain('ATOLL_TEST_CLOCK must be off when NODE_ENV is production.')
  })

  test('ATOLL_TEST_CLOCK is refused for several processes, because each would have its own clock', async () => {
    const { code, err } = await runAtoll('doctor', { at: createTempFolder(), env: { ...env, ATOLL_WORKERS: '2' } })
    expect(code).not.toBe(0)
    expect(err).toContain('ATOLL_TEST_CLOCK requires a single process. Remove ATOLL_WORKERS.')
  })
})
