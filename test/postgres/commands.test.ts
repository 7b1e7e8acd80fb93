import { describe, expect, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { createDatabase, queryDatabase } from '../fakes/postgres'
import { databaseUrl } from '../storage/engines'

describe.skipIf(!databaseUrl)('`atoll postgres`', () => {
  test('`atoll postgres` initializes a database repeatably, adds buckets and reports the state of clusters', async () => {
    const [main, second] = [await createDatabase(databaseUrl!), await createDatabase(databaseUrl!)]
    const env = { ATOLL_DATABASE_URL: main, ATOLL_DATABASE_CLUSTERS: `far=${second} gone=postgres://x@127.0.0.1:1/x` }
    const at = { at: createTempFolder(), env }
    for (let n = 0; n < 2; n++) {
      const { json, code } = await runAtoll('postgres init --json', at)
      expect([code, json]).toEqual([0, { buckets: [{ home: 'main/atoll_b0001', tenants: 0 }], adopted: [] }])
    }
    expect((await runAtoll('postgres bucket add far --json', at)).json).toEqual({ home: 'far/atoll_b0001', tenants: 0 })
    expect((await runAtoll('postgres bucket add nowhere', at)).err).toContain('There is no cluster "nowhere"')
    await createTenantByCli(at, 'one')
    await createTenantByCli(at, 'two')
    const { json, code } = await runAtoll('postgres status --json', at)
    expect(code).toBe(1) // one cluster cannot be reached
    expect(json.buckets).toEqual([
      { home: 'far/atoll_b0001', tenants: 1 },
      { home: 'main/atoll_b0001', tenants: 1 },
    ])
    const states = json.clusters.map(({ name, server, problem }: Record<string, string>) => [name, !!server, !!problem])
    expect(states).toEqual([
      ['main', true, false],
      ['far', true, false],
      ['gone', false, true],
    ])
    await using server = await startAtoll(at)
    // Nothing is in the folder, so another node may use it, too.
    await using node = await startAtoll(at)
    for (const [id, { url }] of [
      ['one', server],
      ['two', node],
    ] as const)
      expect((await apiCaller(url, await signIn(url, id))('GET', '/api/me')).status).toBe(200)
    for (const id of ['one', 'two'])
      expect((await apiCaller(server.url, await signIn(server.url, id))('GET', '/api/me')).status).toBe(200)
  }, 30_000)

  test('`postgres init` refuses a file tenant that is encrypted with other keys with OTHER_KEYS', async () => {
    const url = await createDatabase(databaseUrl!)
    const files = { at: createTempFolder() }
    await createTenantByCli(files, 'old')
    await createTenantByCli(files, 'plain')
    {
      await using server = await startAtoll(files)
      const ask = apiCaller(server.url, await signIn(server.url, 'old'))
      const { _id } = (await ask('GET', '/api/me')).body
      expect((await ask('POST', `/api/users/${_id}/encrypted`, { a: 1 })).status).toBe(200)
    }
    const other = { at: createTempFolder(), env: { ATOLL_DATABASE_URL: url } }
    await runAtoll('postgres init', other)
    await createTenantByCli(other, 'new')
    expect((await runAtoll('vault rotate --json', other)).json).toMatchObject({ key: 2, tenants: 1, failed: [] })
    const at = { ...files, env: { ATOLL_DATABASE_URL: url } }
    const refused = await runAtoll('postgres init --json', at)
    expect([refused.code, JSON.parse(refused.err)]).toMatchObject([1, { code: 'OTHER_KEYS' }])
    expect((await runAtoll('tenant list --json', at)).json.map(({ id }: { id: string }) => id)).toEqual(['new'])
    await runAtoll('tenant delete old --yes', files)
    expect((await runAtoll('postgres init --json', at)).json.adopted).toEqual(['plain'])
  }, 60_000)

  test('`postgres init` adopts the tenants of the data folder, and their sessions stay valid', async () => {
    const files = { at: createTempFolder() }
    await createTenantByCli(files, 'old')
    let headers: Record<string, string>
    {
      await using server = await startAtoll(files)
      headers = await signIn(server.url, 'old')
    }
    const at = { ...files, env: { ATOLL_DATABASE_URL: await createDatabase(databaseUrl!) } }
    expect((await runAtoll('postgres init --json', at)).json.adopted).toEqual(['old'])
    expect((await runAtoll('postgres init --json', at)).json.adopted).toEqual([])
    await createTenantByCli(at, 'new')
    await using server = await startAtoll(at)
    expect((await apiCaller(server.url, headers)('GET', '/api/me')).body.username).toBe('root')
    expect((await apiCaller(server.url, await signIn(server.url, 'new'))('GET', '/api/me')).status).toBe(200)
    const homes = (await runAtoll('tenant list --json', at)).json.map(({ id, home }: Record<string, string>) => [
      id,
      home,
    ])
    expect(homes).toEqual([
      ['new', 'main/atoll_b0001'],
      ['old', undefined],
    ])
  }, 30_000)

  test('`postgres init` without ATOLL_DATABASE_URL exits with code 1 and names the setting', async () => {
    const { code, err } = await runAtoll('postgres init', { at: createTempFolder() })
    expect([code, err]).toEqual([1, expect.stringContaining('ATOLL_DATABASE_URL')])
  })

  test('`postgres init` with a role that may not create schemas exits with code 2 and asks for the owner', async () => {
    const url = new URL(await createDatabase(databaseUrl!))
    const name = `weak_${crypto.randomUUID().slice(0, 8)}`
    await queryDatabase(databaseUrl!, `create role "${name}" login`)
    url.username = name
    const { code, err } = await runAtoll('postgres init', {
      at: createTempFolder(),
      env: { ATOLL_DATABASE_URL: `${url}` },
    })
    expect(code).toBe(2)
    expect(err).toEndWith('Run "atoll postgres init" once with the URL of the owner.\n')
  })

  test('a server with a role that only has atoll_app works once the database is initialized', async () => {
    const owner = await createDatabase(databaseUrl!)
    await runAtoll('postgres init', { at: createTempFolder(), env: { ATOLL_DATABASE_URL: owner } })
    const name = `server_${crypto.randomUUID().slice(0, 8)}`
    await queryDatabase(owner, `create role "${name}" login; grant atoll_app to "${name}"`)
    const url = new URL(owner)
    url.username = name
    const at = { at: createTempFolder(), env: { ATOLL_DATABASE_URL: `${url}` } }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    expect((await apiCaller(server.url, await signIn(server.url, 'acme'))('GET', '/api/me')).status).toBe(200)
  }, 30_000)
})
