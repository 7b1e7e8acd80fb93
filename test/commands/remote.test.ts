// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { DAY_MS } from '../../src/core/clock'
import { TIME } from '../expectations'
import { createTempFolder, PASSWORD, runAtoll, signIn, startAtoll } from '../fakes/cli'

setDefaultTimeout(60_000)

const TOKEN = 'the-operator-token-of-a-remote-server'

test('commands with --url work on the tenants and backups of a server as they do on data here', async () => {
  const at = createTempFolder()
  await using server = await startAtoll({ at, env: { ATOLL_OPERATOR_TOKEN: TOKEN, ATOLL_BACKUP_TO: 'backups' } })
  const here = createTempFolder() // without any data
  const run = (command: string, env: Record<string, string> = { ATOLL_URL: server.url, ATOLL_TOKEN: TOKEN }) =>
    runAtoll(command, { at: here, env })
  const created = await run(
    `--url ${server.url} tenant create acme --name Paper-Boats --host acme.test --admin-username root --admin-password ${PASSWORD.replace(' ', '-')} --token ${TOKEN} --json`,
    {},
  )
  expect([created.code, created.json]).toEqual([0, expect.objectContaining({ id: 'acme', hosts: ['acme.test'] })])
  const app = await fetch(`${server.url}/api/configurations/app-configuration`, { headers: { tenant: 'acme' } })
  expect(((await app.json()) as { metadata: object }).metadata).toEqual({ name: 'Paper-Boats' })
  await signIn(server.url, 'acme', 'root', PASSWORD.replace(' ', '-'))
  expect((await run('tenant list --json')).json.map(({ id }: { id: string }) => id)).toEqual(['acme', 'main'])
  expect((await run('tenant suspend acme --json')).json.status).toBe('suspended')
  expect((await run('tenant resume acme')).out).toBe('The tenant "acme" is active.\n')
  expect((await run('tenant hosts acme new.test,two.test')).out).toBe('new.test\ntwo.test\n')
  expect((await run('tenant clone acme copy --json')).json).toMatchObject({ tenant: 'copy', from: 'acme' })
  const made = await run('backup acme --json')
  expect([made.code, made.json.backups[0].tenant, made.json.failed]).toEqual([0, 'acme', []])
  expect((await run('backup acme --list --json')).json).toEqual([
    expect.objectContaining({ place: made.json.backups[0].place }),
  ])
  const name = made.json.backups[0].place.split('/').at(-1)
  expect((await run(`restore acme/${name} --as third --json`)).json.restored[0].tenant).toBe('third')
  expect((await run(`restore acme/${name}`)).code).toBe(2)
  expect((await run(`restore acme/${name} --yes`)).code).toBe(0)
  expect((await run('tenant delete third --yes --json')).json.trash).toContain('.trash')
  expect((await runAtoll('tenant list --json', { at: here })).json).toEqual([])
})

test('tokens of the operator are created, listed and revoked by commands, here and on a server', async () => {
  const at = createTempFolder()
  await using server = await startAtoll({ at, env: { ATOLL_OPERATOR_TOKEN: TOKEN } })
  const elsewhere = createTempFolder()
  const here = (...args: string[]) => runAtoll(['operator-token', ...args], { at })
  const remote = (...args: string[]) =>
    runAtoll(['operator-token', ...args], { at: elsewhere, env: { ATOLL_URL: server.url, ATOLL_TOKEN: TOKEN } })
  const listTenantsWith = (token: string) =>
    runAtoll(`tenant list --url ${server.url} --token ${token}`, { at: elsewhere })
  for (const [run, other] of [
    [here, remote],
    [remote, here],
  ] as const) {
    expect((await run('list')).out).toBe('No tokens.\n')
    const created = await run(
      'create',
      'nightly run',
      '--scope',
      'read',
      '--scope',
      'backups,read',
      '--days',
      '90',
      '--json',
    )
    expect([created.code, created.json]).toEqual([
      0,
      expect.objectContaining({ name: 'nightly run', scopes: ['read', 'backups'], used: null }),
    ])
    const { token, _id, expires } = created.json
    expect(Date.parse(expires) - Date.now()).toBeWithin(89 * DAY_MS, 91 * DAY_MS)
    expect((await listTenantsWith(token)).code).toBe(0)
    const listed = await other('list', '--json')
    expect([listed.json, listed.out.includes(token)]).toEqual([
      [{ _id, name: 'nightly run', scopes: ['read', 'backups'], created: TIME, expires, used: TIME }],
      false,
    ])
    expect((await other('list')).out).toMatch(
      /^name +scopes +created +last used +expires\nnightly run +read,backups +2/,
    )
    const failures = [
      [['create', 'nightly run', '--scope', 'read'], 1, 'There is a token "nightly run" already.'],
      [['create', '/', '--scope', 'read'], 1, 'Write the name with letters'],
      [['create', 'x'], 2, '--scope'],
      [['create', 'x', '--scope', 'all'], 2, '"all" is not a scope. Use one or more of these: read, tenants'],
      [['create', 'x', '--scope', 'read', '--days', '0'], 2, '--days takes a number of days'],
      [['revoke', 'nobody', '--yes'], 1, 'There is no such operator token.'],
      [['revoke', 'nightly run'], 2, 'Revoke the token "nightly run"? Add --yes to confirm.'],
    ] as const
    for (const [args, code, sentence] of failures) {
      const failed = await run(...args)
      expect([args, failed.code, failed.err]).toEqual([args, code, expect.stringContaining(sentence)])
    }
    const revoked = await run('revoke', 'nightly run', '--yes')
    expect([revoked.code, revoked.out]).toEqual([0, 'Revoked the token "nightly run".\n'])
    expect((await listTenantsWith(token)).err).toContain('Send the operator token')
  }
  const shown = await here('create', 'deploy', '--scope', 'moves')
  expect(shown.out).toMatch(
    /^Created the token "deploy" \(moves\)\. Copy it now; it is not shown again:\natlop_\S{40,}\n$/,
  )
  const { token } = (await here('create', 'reader', '--scope', 'read', '--json')).json
  const refused = await runAtoll(`operator-token list --url ${server.url} --token ${token}`, { at: elsewhere })
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('Only the token of the setting')])
})

test('a wrong token, an address without a server, and a command that works on data only are refused with a sentence', async () => {
  const at = createTempFolder()
  await using server = await startAtoll({ at, env: { ATOLL_OPERATOR_TOKEN: TOKEN } })
  const run = (command: string) => runAtoll(command, { at: createTempFolder() })
  const failures = [
    [`tenant list --url ${server.url} --token wrong`, 1, 'Send the operator token'],
    ['tenant list --url http://127.0.0.1:9 --token x', 1, 'Cannot reach http://127.0.0.1:9'],
    [`tenant show nobody --url ${server.url} --token ${TOKEN}`, 1, 'tenant'],
    [`tenant list --url ${server.url}`, 2, '--token or ATOLL_TOKEN'],
    ['tenant list --url example.com --token x', 2, 'must be a URL such as https://example.com'],
    [`operator-token list --url ${server.url} --token wrong`, 1, 'Send the operator token'],
    [`doctor --url ${server.url} --token ${TOKEN}`, 2, 'works on local data only'],
    [`backup --to x --url ${server.url} --token ${TOKEN}`, 2, 'the server uses its own settings'],
    [`backup main --url ${server.url} --token ${TOKEN}`, 1, 'ATOLL_BACKUP_TO'],
  ] as const
  for (const [command, code, sentence] of failures) {
    const result = await run(command)
    expect([command, result.code, `${result.err}${result.out}`]).toEqual([
      command,
      code,
      expect.stringContaining(sentence),
    ])
  }
})
