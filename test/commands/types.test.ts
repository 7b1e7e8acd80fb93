// engine: sqlite
import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { COMPILES_CLEANLY, compileTypeScript } from '../blueprints/typegen/typescript-compiler'
import { binaryPath } from '../fakes/binary'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, signIn, startAtoll } from '../fakes/cli'

setDefaultTimeout(60_000)

describe('`atoll types`', () => {
  const at = { at: createTempFolder() }
  let client: string
  beforeAll(async () => {
    await createTenantByCli(at, 'acme')
    await createTenantByCli(at, 'other')
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    const books = { key: 'books', name: 'Books', fields: [{ key: 'title', type: 'string', required: true }] }
    expect((await call('POST', '/api/blueprints', books)).status).toBe(201)
    client = (await call('GET', '/api/blueprints/client.ts')).body
  })

  test('`atoll types` prints or writes the types of a tenant, and with --client a client, too', async () => {
    const printed = await runAtoll('types --tenant acme', at)
    expect([printed.code, printed.err]).toEqual([0, ''])
    expect(client).toStartWith(printed.out)
    expect((await runAtoll('types --tenant acme --client', at)).out).toBe(client)
    expect((await runAtoll('types --tenant acme --json', at)).json).toEqual({ text: printed.out })
    expect((await runAtoll('types --tenant acme --out atoll.d.ts', at)).out).toBe('Wrote atoll.d.ts.\n')
    expect((await runAtoll('types --tenant acme --client --out atoll.ts --json', at)).json).toEqual({
      file: 'atoll.ts',
    })
    expect(await Bun.file(join(at.at, 'atoll.d.ts')).text()).toBe(printed.out)
    expect(await Bun.file(join(at.at, 'atoll.ts')).text()).toBe(client)
    const use = `import type { Books } from './atoll'\nexport const title = (book: Books): string => book.title`
    expect(await compileTypeScript({ 'atoll.d.ts': printed.out, 'use.ts': use })).toMatchObject(COMPILES_CLEANLY)
    expect((await runAtoll('types --tenant other', at)).out).not.toContain('Books')
  })

  test('`atoll types --hooks` writes hooks that import the client, wherever both are', async () => {
    mkdirSync(join(at.at, 'hooks'))
    const options = 'types --tenant acme --client --out client.ts --hooks hooks/atoll-hooks.ts'
    expect((await runAtoll(options, at)).out).toBe('Wrote client.ts and hooks/atoll-hooks.ts.\n')
    expect(await Bun.file(join(at.at, 'client.ts')).text()).toBe(client)
    expect(await Bun.file(join(at.at, 'hooks/atoll-hooks.ts')).text()).toContain(`from "../client"`)
    const { json } = await runAtoll('types --tenant acme --client --out client.ts --hooks hooks.ts --json', at)
    expect(json).toEqual({ file: 'client.ts', hooks: 'hooks.ts' })
    expect(await Bun.file(join(at.at, 'hooks.ts')).text()).toContain(`from "./client"`)
    for (const incomplete of ['--hooks x.ts', '--client --hooks x.ts', '--out x.ts --hooks y.ts']) {
      const { code, err } = await runAtoll(`types --tenant acme ${incomplete}`, at)
      expect([code, err]).toEqual([1, expect.stringContaining('--hooks requires --client and --out.')])
    }
  })

  test('`atoll types --url` writes the types and the client of a server, by a token that reads blueprints', async () => {
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    const create = async (scope: string) =>
      (await call('POST', '/api/me/api-tokens', { nickname: scope, scopes: [scope] })).body.token as string
    const run = (options: string, token: string) =>
      runAtoll(`types --url ${server.url} --tenant acme ${options}`, {
        ...{ at: createTempFolder(), env: { ATOLL_TOKEN: token } },
      })
    const token = await create('blueprints:read')
    expect((await run('--client', token)).out).toBe(client)
    expect(client).toStartWith((await run('', token)).out)
    const refused = await run('--client --out atoll.ts --json', await create('definitions:write'))
    expect([refused.code, JSON.parse(refused.err).code]).toEqual([1, 'FORBIDDEN'])
  })

  test('`atoll types` writes its complete output to a file redirected by the shell', async () => {
    const file = Bun.file(join(at.at, 'redirected.ts'))
    const program = [binaryPath(), 'types', '--tenant', 'acme', '--client']
    const child = Bun.spawn(program, { cwd: at.at, env: { PATH: process.env.PATH }, stdout: file })
    expect(await child.exited).toBe(0)
    expect(await file.text()).toBe(client)
  })

  test('`atoll types --out` keeps the old file and leaves no temporary file when it fails', async () => {
    await Bun.write(join(at.at, 'old.ts'), 'old')
    expect((await runAtoll('types --tenant nobody --out old.ts --json', at)).code).toBe(1)
    expect(await Bun.file(join(at.at, 'old.ts')).text()).toBe('old')
    mkdirSync(join(at.at, 'folder'))
    for (const [out, reason] of [
      ['folder', '"folder" cannot be written: it is a folder.'],
      ['none/atoll.ts', 'The folder "none" does not exist.'],
    ] as const) {
      const { code, err } = await runAtoll(['types', '--tenant', 'acme', '--out', out, '--json'], at)
      expect([code, JSON.parse(err)]).toEqual([1, expect.objectContaining({ code: 'INVALID_INPUT', message: reason })])
    }
    expect(readdirSync(at.at).filter((name) => name.endsWith('.tmp'))).toEqual([])
  })

  test('`atoll types` exits with code 2 without --tenant and refuses an unknown tenant with TENANT_NOT_FOUND', async () => {
    const { code, err } = await runAtoll('types', at)
    expect([code, err]).toEqual([2, expect.stringContaining('Specify the tenant with --tenant.')])
    expect(JSON.parse((await runAtoll('types --tenant none --json', at)).err).code).toBe('TENANT_NOT_FOUND')
  })
})
