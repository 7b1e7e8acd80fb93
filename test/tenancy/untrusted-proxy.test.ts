// engine: sqlite
import { expect, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, startAtoll } from '../fakes/cli'

const warningsIn = (log: string) => log.split('\n').filter((line) => line.includes('UNTRUSTED_PROXY'))
const forwarded = { 'x-forwarded-for': '192.0.2.1', tenant: 'acme' }

test('a server behind an untrusted proxy warns once a day, even across restarts, and doctor warns, too', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  expect((await runAtoll('doctor --json', at)).json.warnings).toEqual([])
  const logs: string[] = []
  for (let run = 0; run < 2; run++) {
    const server = await startAtoll(at)
    const call = apiCaller(server.url, forwarded)
    for (let n = 0; n < 3; n++) await call('GET', '/health')
    await server.end('SIGTERM')
    logs.push(await server.logged)
  }
  expect(logs.map((log) => warningsIn(log).length)).toEqual([1, 0])
  const { code, json } = await runAtoll('doctor --json', at)
  expect([code, json.warnings]).toMatchObject([0, [{ path: 'ATOLL_TRUST_PROXY', code: 'UNTRUSTED_PROXY' }]])
  expect((await runAtoll('doctor', at)).out).toContain('WARNING ATOLL_TRUST_PROXY')
}, 60_000)

test('a server does not warn when the proxy is trusted or no forwarding header is sent', async () => {
  for (const [setting, headers] of [
    ['on', forwarded],
    ['off', { tenant: 'acme' }],
  ] as const) {
    const at = { at: createTempFolder(), env: { ATOLL_TRUST_PROXY: setting } }
    await createTenantByCli(at, 'acme')
    const server = await startAtoll(at)
    await apiCaller(server.url, headers)('GET', '/health')
    await server.end('SIGTERM')
    expect(warningsIn(await server.logged)).toEqual([])
    expect((await runAtoll('doctor --json', at)).json.warnings).toEqual([])
  }
}, 60_000)
