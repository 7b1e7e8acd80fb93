import { describe, expect, test } from 'bun:test'
import { ask, freshDatabase } from '../outside/postgres'
import { atoll, caller, emptyFolder, makeTenant, serve, signIn } from '../outside/program'
import { databaseUrl } from '../storage/engines'

describe.skipIf(!databaseUrl)('the command `postgres`', () => {
  test('prepares a database, shows it, adds buckets, and does no harm twice', async () => {
    const [main, second] = [await freshDatabase(databaseUrl!), await freshDatabase(databaseUrl!)]
    const env = { ATOLL_DATABASE_URL: main, ATOLL_DATABASE_CLUSTERS: `far=${second} gone=postgres://x@127.0.0.1:1/x` }
    const at = { at: emptyFolder(), env }
    for (let n = 0; n < 2; n++) {
      const { json, code } = await atoll('postgres init --json', at)
      expect([code, json]).toEqual([0, { buckets: [{ home: 'main/atoll_b0001', tenants: 0 }], adopted: [] }])
    }
    expect((await atoll('postgres bucket add far --json', at)).json).toEqual({ home: 'far/atoll_b0001', tenants: 0 })
    expect((await atoll('postgres bucket add nowhere', at)).err).toContain('There is no cluster "nowhere"')
    await makeTenant(at, 'one')
    await makeTenant(at, 'two')
    const { json, code } = await atoll('postgres status --json', at)
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
    await using server = await serve(at)
    for (const id of ['one', 'two'])
      expect((await caller(server.url, await signIn(server.url, id))('GET', '/api/me')).status).toBe(200)
  }, 30_000)

  test('leaves alone what is encrypted by other keys than those of the database', async () => {
    const url = await freshDatabase(databaseUrl!)
    const files = { at: emptyFolder() }
    await makeTenant(files, 'old')
    await makeTenant(files, 'plain')
    {
      await using server = await serve(files)
      const ask = caller(server.url, await signIn(server.url, 'old'))
      const { _id } = (await ask('GET', '/api/me')).body
      expect((await ask('POST', `/api/users/${_id}/encrypted`, { a: 1 })).status).toBe(200)
    }
    const other = { at: emptyFolder(), env: { ATOLL_DATABASE_URL: url } }
    await atoll('postgres init', other)
    await makeTenant(other, 'new')
    expect((await atoll('vault rotate --json', other)).json).toMatchObject({ key: 2, tenants: 1, failed: [] })
    const at = { ...files, env: { ATOLL_DATABASE_URL: url } }
    const refused = await atoll('postgres init --json', at)
    expect([refused.code, JSON.parse(refused.err)]).toMatchObject([1, { code: 'OTHER_KEYS' }])
    expect((await atoll('tenant list --json', at)).json.map(({ id }: { id: string }) => id)).toEqual(['new'])
    await atoll('tenant delete old --yes', files)
    expect((await atoll('postgres init --json', at)).json.adopted).toEqual(['plain'])
  }, 60_000)

  test('takes over tenants whose files are here; their sign-ins stay good', async () => {
    const files = { at: emptyFolder() }
    await makeTenant(files, 'old')
    let headers: Record<string, string>
    {
      await using server = await serve(files)
      headers = await signIn(server.url, 'old')
    }
    const at = { ...files, env: { ATOLL_DATABASE_URL: await freshDatabase(databaseUrl!) } }
    expect((await atoll('postgres init --json', at)).json.adopted).toEqual(['old'])
    expect((await atoll('postgres init --json', at)).json.adopted).toEqual([])
    await makeTenant(at, 'new')
    await using server = await serve(at)
    expect((await caller(server.url, headers)('GET', '/api/me')).body.username).toBe('root')
    expect((await caller(server.url, await signIn(server.url, 'new'))('GET', '/api/me')).status).toBe(200)
    const homes = (await atoll('tenant list --json', at)).json.map(({ id, home }: Record<string, string>) => [id, home])
    expect(homes).toEqual([
      ['new', 'main/atoll_b0001'],
      ['old', undefined],
    ])
  }, 30_000)

  test('says what is missing without a database', async () => {
    const { code, err } = await atoll('postgres init', { at: emptyFolder() })
    expect([code, err]).toEqual([1, expect.stringContaining('ATOLL_DATABASE_URL')])
  })

  test('a role that may not prepare the database is told who can', async () => {
    const url = new URL(await freshDatabase(databaseUrl!))
    const name = `weak_${crypto.randomUUID().slice(0, 8)}`
    await ask(databaseUrl!, `create role "${name}" login`)
    url.username = name
    const { code, err } = await atoll('postgres init', { at: emptyFolder(), env: { ATOLL_DATABASE_URL: `${url}` } })
    expect(code).toBe(2)
    expect(err).toEndWith('Run "atoll postgres init" once by the URL of its owner.\n')
  })

  test('a role that only serves works once the database is prepared', async () => {
    const owner = await freshDatabase(databaseUrl!)
    await atoll('postgres init', { at: emptyFolder(), env: { ATOLL_DATABASE_URL: owner } })
    const name = `server_${crypto.randomUUID().slice(0, 8)}`
    await ask(owner, `create role "${name}" login; grant atoll_app to "${name}"`)
    const url = new URL(owner)
    url.username = name
    const at = { at: emptyFolder(), env: { ATOLL_DATABASE_URL: `${url}` } }
    await makeTenant(at, 'acme')
    await using server = await serve(at)
    expect((await caller(server.url, await signIn(server.url, 'acme'))('GET', '/api/me')).status).toBe(200)
  }, 30_000)
})
