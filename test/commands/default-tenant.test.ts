// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { apiCaller, createTempFolder, PASSWORD, readMetric, runAtoll, signIn, startAtoll } from '../fakes/cli'

setDefaultTimeout(180_000)

const create = (id: string) => ['tenant', 'create', id, '--admin-username', 'root', '--admin-password', PASSWORD]

describe('requests that neither a header nor a host gives to a tenant', () => {
  const at = { at: createTempFolder() }

  test('go to the lone tenant, also beside its copies, and to the first of several at local hosts only', async () => {
    await runAtoll(create('main'), at)
    await using server = await startAtoll(at)
    const { port } = server
    /** Returns which tenant answers at a host: that whose administrator can sign in there. */
    const answering = async (host: string) => {
      const { status, body } = await apiCaller(server.url, { host })('GET', '/api/auth/providers')
      return status === 200 ? 'a tenant' : body.code
    }
    const names = [
      'shop.example.com',
      `localhost:${port}`,
      `app.localhost:${port}`,
      `127.0.0.1:${port}`,
      `[::1]:${port}`,
    ]
    const answers = async () => Promise.all(names.map(answering))
    const everywhere = names.map(() => 'a tenant')
    expect(await answers()).toEqual(everywhere)

    await runAtoll('backup --to backups', at)
    const copied = await runAtoll('restore backups/main --as restored', at)
    expect(copied.out).toContain('tenant resume restored --outgoing')
    await runAtoll('tenant clone main clone', at)
    await Bun.sleep(1_600) // the server knows it
    expect(await answers()).toEqual(everywhere)

    const second = await runAtoll(create('second'), at)
    expect(second.err).toStartWith(
      'The tenant "main" answers at localhost and at IP addresses; other unknown hosts get 404. To change it, run: ',
    )
    await Bun.sleep(1_600)
    const local = ['TENANT_NOT_FOUND', ...names.slice(1).map(() => 'a tenant')]
    expect(await answers()).toEqual(local)
    expect((await runAtoll(create('third'), at)).err).toBe('')

    // The first tenant is the one that answers, and a failed sign-in says so on the own machine only.
    const signInAs = (username: string, headers: Record<string, string> = {}) =>
      apiCaller(server.url, headers)('POST', '/api/signin', { username, password: PASSWORD, authType: 'oauth' })
    const failed = await signInAs('nobody')
    expect([failed.status, failed.body.code, failed.body.details]).toEqual([
      401,
      'INVALID_CREDENTIALS',
      { tenant: 'main' },
    ])
    const forwarded = await signInAs('nobody', { 'x-forwarded-for': '192.0.2.1' })
    expect([forwarded.status, forwarded.body.details]).toEqual([401, undefined])

    const choose = async (args: string) => {
      const { code, out, err } = await runAtoll(`tenant default ${args}`, at)
      expect([code, err]).toEqual([0, ''])
      await Bun.sleep(1_600)
      return out.trim()
    }
    expect(await choose('--none')).toContain('No tenant answers')
    expect(await answers()).toEqual(names.map(() => 'TENANT_NOT_FOUND'))
    expect(await readMetric(server.url, 'atoll_http_requests_total', { status: '404' })).toBeGreaterThan(0)
    expect((await runAtoll('doctor --json', at)).json.checks).toContainEqual({
      check: 'default tenant',
      ok: true,
      message: expect.stringContaining('No tenant answers'),
    })
    expect(await choose('second')).toContain('"second" answers at every host')
    expect(await answers()).toEqual(everywhere)
    expect((await signInAs('nobody')).body.details).toEqual({ tenant: 'second' })
    expect(await choose('--local')).toContain('"main" answers at localhost')
    expect(await answers()).toEqual(local)

    const doctor = await runAtoll('doctor --json', at)
    expect(doctor.json.checks).toContainEqual({
      check: 'default tenant',
      ok: true,
      message: expect.stringContaining('"main" answers at localhost'),
    })
    for (const unknown of ['nonsense --help', 'tenant nonsense -h', '--url http://x nonsense --help'])
      expect((await runAtoll(unknown, at)).code, unknown).toBe(2)
    for (const known of ['--help', 'tenant --help', 'tenant default --help'])
      expect((await runAtoll(known, at)).code, known).toBe(0)
    expect((await runAtoll('tenant default nobody', at)).code).toBe(1)
    expect((await runAtoll('tenant default --none --local', at)).code).toBe(2)
  })

  test('go to ATOLL_DEFAULT_TENANT at every host', async () => {
    await using server = await startAtoll({ ...at, env: { ATOLL_DEFAULT_TENANT: 'second' } })
    const { body } = await apiCaller(server.url, { host: 'shop.example.com' })('POST', '/api/signin', {
      username: 'nobody',
      password: PASSWORD,
    })
    expect(body.details).toEqual({ tenant: 'second' })
    expect(await signIn(server.url, 'main')).toMatchObject({ tenant: 'main' })
  })

  test('go to a copy where it is the only tenant', async () => {
    const machine = { at: createTempFolder() }
    await runAtoll(['restore', `${at.at}/backups/main`, '--as', 'copy'], machine)
    await using server = await startAtoll(machine)
    expect((await apiCaller(server.url)('GET', '/api/auth/providers')).status).toBe(200)
  })
})
