// engine: sqlite
import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { Settings } from '../../src/config'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  type RunOptions,
  runAtoll,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { errorOf } from '../rejections'

setDefaultTimeout(30_000)

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Runs a command that fails and returns `[exit code, code]`. */
async function failureOf(command: string | string[], at: RunOptions) {
  const { code, out, err } = await runAtoll(
    typeof command === 'string' ? `${command} --json` : [...command, '--json'],
    at,
  )
  expect(out).toBe('')
  return [code, (JSON.parse(err) as { code: string }).code]
}

describe('`atoll tenant`', () => {
  const at = { at: createTempFolder() }
  const json = async (command: string) => {
    const { code, json, err } = await runAtoll(`${command} --json`, at)
    expect([code, err]).toEqual([0, ''])
    return json
  }

  test('`atoll tenant` creates, lists, shows, suspends, resumes and deletes tenants', async () => {
    expect(await json('tenant list')).toEqual([])
    const acme = {
      id: 'acme',
      status: 'active',
      created: expect.stringMatching(ISO),
      hosts: ['a.test', 'b.test', 'c.test'],
    }
    expect(await json('tenant create acme --host a.test,B.test --host c.test:80')).toEqual(acme)
    await json('tenant create beta')
    expect(await json('tenant show acme')).toEqual(acme)
    expect(await json('tenant list')).toMatchObject([acme, { id: 'beta', hosts: [] }])
    expect(await json('tenant suspend acme')).toEqual({ ...acme, status: 'suspended' })
    expect(await json('tenant show acme')).toEqual({ ...acme, status: 'suspended' })
    expect(await json('tenant resume acme')).toEqual(acme)
    const { id, trash } = await json('tenant delete acme --yes')
    expect([id, existsSync(join(at.at, trash, 'data.db'))]).toEqual(['acme', true])
    expect(await json('tenant list')).toMatchObject([{ id: 'beta' }])
    expect(existsSync(join(at.at, 'tenants/acme'))).toBeFalse()
  })

  test('`atoll tenant quotas` shows, changes and removes quotas of a tenant, and refuses what is none', async () => {
    await json('tenant create measured')
    const changed = await json('tenant quotas measured --set entities=5 --set storage=2G')
    expect(changed).toMatchObject({
      entities: 5,
      storage: 2 * 1_024 ** 3,
      mails: null,
      usage: { entities: 0, files: 0 },
    })
    expect(await json('tenant quotas measured --set entities= --set mails=0')).toMatchObject({
      entities: null,
      mails: 0,
    })
    const { out } = await runAtoll(['tenant', 'quotas', 'measured'], at)
    expect(out).toMatch(/storage +\d+ +2147483648/)
    for (const quota of ['entities=-1', 'storage=much', 'entites=5'])
      expect(await failureOf(['tenant', 'quotas', 'measured', '--set', quota], at), quota).toEqual([
        2,
        expect.any(String),
      ])
    expect(await failureOf('tenant quotas nobody', at)).toEqual([1, 'TENANT_NOT_FOUND'])
  })

  test('`atoll tenant hosts` shows, replaces and clears the hosts of a tenant and refuses taken or invalid ones', async () => {
    await json('tenant create hosted --host one.test')
    expect((await json('tenant hosts hosted')).hosts).toEqual(['one.test'])
    expect((await json('tenant hosts hosted two.test three.test')).hosts).toEqual(['three.test', 'two.test'])
    expect((await json('tenant hosts hosted --clear')).hosts).toEqual([])
    await json('tenant hosts beta one.test')
    expect(await failureOf('tenant hosts hosted one.test', at)).toEqual([1, 'HOST_TAKEN'])
    expect(await failureOf('tenant hosts hosted a/b', at)).toEqual([1, 'INVALID_INPUT'])
    expect((await json('tenant hosts hosted')).hosts).toEqual([])
  })

  test('every command on an unknown tenant exits with code 1 and TENANT_NOT_FOUND', async () => {
    const commands = [
      'show none',
      'suspend none',
      'resume none',
      'delete none --yes',
      'hosts none',
      'hosts none a.test',
    ]
    const failures = await Promise.all(commands.map((command) => failureOf(`tenant ${command}`, at)))
    for (const failure of failures) expect(failure).toEqual([1, 'TENANT_NOT_FOUND'])
    expect(await failureOf('user create none x --password 12345678', at)).toEqual([1, 'TENANT_NOT_FOUND'])
  })

  test('`atoll tenant create` refuses invalid or taken input and leaves no folder behind', async () => {
    const before = readdirSync(join(at.at, 'tenants')).sort()
    const cases: [string[], string][] = [
      [['create', '../x'], 'INVALID_INPUT'],
      [['create', 'A'], 'INVALID_INPUT'],
      [['create', 'beta'], 'TENANT_EXISTS'],
      [['create', 'x', '--host', 'one.test'], 'HOST_TAKEN'],
      [['create', 'x', '--admin-username', 'root', '--admin-password', 'short'], 'INVALID_INPUT'],
    ]
    for (const [args, code] of cases)
      expect(await failureOf(['tenant', ...args], at), args.join(' ')).toEqual([1, code])
    const half = await runAtoll(['tenant', 'create', 'x', '--admin-username', 'root'], at)
    expect([half.code, half.err]).toEqual([1, expect.stringContaining('--admin-password')])
    const nameless = await runAtoll('tenant create x --admin-password 12345678', at)
    expect([nameless.code, nameless.err]).toEqual([2, expect.stringContaining('--admin-username')])
    const after = readdirSync(join(at.at, 'tenants')).sort()
    expect(after.filter((name) => name !== '.trash')).toEqual(before.filter((name) => name !== '.trash'))
    expect(await json('tenant create x')).toMatchObject({ id: 'x' })
  })

  test('`atoll tenant` without --json prints sentences', async () => {
    const outputOf = async (command: string) => (await runAtoll(command, at)).out
    expect(await outputOf('tenant create said --host said.test')).toStartWith(
      'Created the tenant "said" at said.test.\n',
    )
    expect(await outputOf('tenant list')).toMatch(/^said +active +\S+Z +said\.test$/m)
    expect(await outputOf('tenant suspend said')).toBe('The tenant "said" is suspended.\n')
    expect(await outputOf('tenant delete said --yes')).toMatch(
      /^Deleted the tenant "said"\. Its files are in \S*\.trash\S*\.\n$/,
    )
    const { code, err } = await runAtoll('tenant show said', at)
    expect([code, err]).toEqual([1, 'There is no tenant "said".\n'])
  })
})

describe('`atoll user`', () => {
  const at = { at: createTempFolder() }
  beforeAll(() => createTenantByCli(at, 'acme'))

  test('`atoll user` creates users and sets passwords and roles, and the users can sign in', async () => {
    const made = await runAtoll(
      'user create acme bob --password 12345678 --email bob@acme.test --roles editor,user --json',
      at,
    )
    expect([made.code, made.json]).toEqual([
      0,
      expect.objectContaining({ username: 'bob', email: 'bob@acme.test', roles: ['editor', 'user'] }),
    ])
    expect(made.out).not.toContain('12345678')
    const typed = await runAtoll('user create acme eve --json', { ...at, stdin: 'from the pipe\n' })
    expect([typed.code, typed.json.roles]).toEqual([0, ['user']])
    expect((await runAtoll('user password acme BOB --password 87654321 --json', at)).json).toEqual({ username: 'BOB' })
    expect((await runAtoll('user roles acme eve admin,editor --json', at)).json.roles).toEqual(['admin', 'editor'])
    expect((await runAtoll(['user', 'roles', 'acme', 'eve', '', '--json'], at)).json.roles).toEqual([])

    await using server = await startAtoll(at)
    const bob = apiCaller(server.url, await signIn(server.url, 'acme', 'bob', '87654321'))
    // An address that the operator sets counts as verified.
    expect((await bob('GET', '/api/me')).body).toMatchObject({ email: 'bob@acme.test', emailVerified: true })
    await signIn(server.url, 'acme', 'bob@acme.test', '87654321')
    await signIn(server.url, 'acme', 'eve', 'from the pipe')
    expect((await errorOf(signIn(server.url, 'acme', 'bob', '12345678'))).message).toContain('INVALID_CREDENTIALS')
  })

  test('`atoll user` refuses weak passwords, taken names, unknown users and the last admin with a code', async () => {
    const create = (...args: string[]) => failureOf(['user', 'create', 'acme', ...args], at)
    expect(await create('x', '--password', 'short')).toEqual([1, 'INVALID_INPUT'])
    expect(await create('x')).toEqual([1, 'INVALID_INPUT']) // nothing comes from standard input
    expect(await create('ROOT', '--password', '12345678')).toEqual([1, 'USERNAME_EXISTS'])
    await runAtoll('user create acme tim --password 12345678 --email tim@acme.test', at)
    expect(await create('x', '--password', '12345678', '--email', 'TIM@acme.test')).toEqual([1, 'EMAIL_EXISTS'])
    expect(await failureOf('user password acme nobody --password 12345678', at)).toEqual([1, 'USER_NOT_FOUND'])
    expect(await failureOf('user password acme root --password short', at)).toEqual([1, 'INVALID_INPUT'])
    expect(await failureOf('user roles acme nobody user', at)).toEqual([1, 'USER_NOT_FOUND'])
    expect(await failureOf('user roles acme root user', at)).toEqual([1, 'LAST_ADMIN'])
  })

  test('`atoll user create` refuses invalid names and e-mail addresses with INVALID_INPUT', async () => {
    const create = (...args: string[]) => failureOf(['user', 'create', 'acme', ...args, '--password', '12345678'], at)
    for (const name of ['', 'a\nb', 'x'.repeat(5_000)]) expect(await create(name), name).toEqual([1, 'INVALID_INPUT'])
    for (const email of ['nonsense', 'a@b@c', 'a b@c.test'])
      expect(await create('y', '--email', email)).toEqual([1, 'INVALID_INPUT'])
  })
})

describe('`atoll doctor` and `atoll migrate`', () => {
  test('`atoll doctor` lists every setting with its source and hides secret values', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_HOST: 'localhost', ATOLL_SIGNING_KEY: 'very secret indeed' } }
    await Bun.write(join(at.at, 'atoll.json'), JSON.stringify({ ATOLL_TRUST_PROXY: 'on' }))
    await createTenantByCli(at, 'acme')
    const { code, json, out } = await runAtoll('doctor --json', at)
    expect(code).toBe(0)
    expect(json.settings.map(({ name }: { name: string }) => name).sort()).toEqual(
      Object.keys(Settings.properties).sort(),
    )
    const of = (name: string) => json.settings.find((one: { name: string }) => one.name === name)
    expect(of('ATOLL_HOST')).toMatchObject({ value: 'localhost', source: 'environment' })
    expect(of('ATOLL_TRUST_PROXY')).toMatchObject({ value: 'on', source: 'atoll.json' })
    expect(of('ATOLL_TENANTS')).toMatchObject({ value: 'tenants', source: 'default' })
    expect(out).not.toContain('very secret')
    expect(json.checks).toContainEqual(expect.objectContaining({ check: 'tenant acme', ok: true }))
    const people = await runAtoll('doctor', at)
    expect([people.code, people.out]).toEqual([0, expect.stringMatching(/^ATOLL_HOST +localhost +environment /m)])
    expect(people.out).not.toContain('very secret')
  })

  test('`atoll doctor` reports the same twice in an empty folder', async () => {
    const at = { at: createTempFolder() }
    const [first, second] = [await runAtoll('doctor --json', at), await runAtoll('doctor --json', at)]
    expect(first.json.checks).toContainEqual(expect.objectContaining({ check: 'data folder' }))
    expect([first.code, first.json.checks]).toEqual([second.code, second.json.checks])
  })

  test('`atoll doctor` reports a missing default tenant, and one whose hosts other tenants could claim', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_DEFAULT_TENANT: 'main', ATOLL_HOST_CLAIMS: 'open' } }
    const checkDefaultTenant = async (env = {}) => {
      const { code, json } = await runAtoll('doctor --json', { ...at, env: { ...at.env, ...env } })
      return [code, json.checks.find(({ check }: { check: string }) => check === 'default tenant')?.ok]
    }
    await runAtoll('tenant create other', at)
    expect(await checkDefaultTenant()).toEqual([1, false])
    await runAtoll('tenant create main', at)
    expect(await checkDefaultTenant()).toEqual([1, false])
    expect(await checkDefaultTenant({ ATOLL_HOST_CLAIMS: 'off' })).toEqual([0, true])
    expect(await checkDefaultTenant({ ATOLL_PUBLIC_HOSTS: 'app.example.com' })).toEqual([0, true])
    await runAtoll('tenant hosts main app.example.com', at)
    expect(await checkDefaultTenant()).toEqual([0, true])
  })

  test('`atoll doctor` and `atoll migrate` report the tenant that cannot be opened and process the others', async () => {
    const at = { at: createTempFolder() }
    for (const id of ['a', 'b', 'c']) await runAtoll(`tenant create ${id}`, at)
    await runAtoll('tenant suspend c', at)
    const db = new BetterSqlite(join(at.at, 'tenants/a/data.db'))
    db.pragma('user_version = 1000')
    db.close()
    const checked = await runAtoll('doctor --json', at)
    const checks = checked.json.checks as { check: string; ok: boolean; message: string }[]
    expect(checked.code).toBe(1)
    expect(checks.filter(({ check }) => check.startsWith('tenant')).map(({ check, ok }) => `${check} ${ok}`)).toEqual([
      'tenant a false',
      'tenant b true',
      'tenant c true',
    ])
    expect(checks.find(({ ok }) => !ok)!.message).toContain('schema 1000')
    const migrated = await runAtoll('migrate --json', at)
    expect(migrated.code).toBe(1)
    expect(migrated.json).toMatchObject([
      { tenant: 'a', error: expect.stringContaining('schema 1000') },
      { tenant: 'b' },
      { tenant: 'c' },
    ])
    expect(migrated.json[1]).not.toHaveProperty('error')
  })

  test('`atoll migrate` reports every tenant as up to date', async () => {
    const at = { at: createTempFolder() }
    expect((await runAtoll('migrate --json', at)).json).toEqual([])
    await createTenantByCli(at, 'acme')
    const { code, json } = await runAtoll('migrate --json', at)
    expect([code, json]).toEqual([0, [{ tenant: 'acme' }]])
    expect((await runAtoll('migrate', at)).out).toBe('acme: up to date\n')
  })

  test('only the owner can read secrets.json and the data folder, and `atoll doctor` reports when others can', async () => {
    const at = { at: createTempFolder() }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    await signIn(server.url, 'acme')
    const secrets = join(at.at, 'tenants/secrets.json')
    expect(statSync(secrets).mode & 0o077).toBe(0)
    expect(statSync(join(at.at, 'tenants')).mode & 0o077).toBe(0)
    chmodSync(secrets, 0o644)
    const { code, json } = await runAtoll('doctor --json', at)
    expect(code).toBe(1)
    expect(json.checks).toContainEqual(expect.objectContaining({ check: 'secrets', ok: false }))
  })
})

describe('`atoll`', () => {
  const at = { at: createTempFolder() }

  test('`atoll version` and `atoll --version` print the version', async () => {
    const { json } = await runAtoll('version --json', at)
    expect(json).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      bun: Bun.version,
      timeZones: expect.anything(),
    })
    expect((await runAtoll('version', at)).out).toBe(`${json.version}\n`)
    expect((await runAtoll('--version', at)).out).toBe(`${json.version}\n`)
  })

  test('`atoll --help` lists every command, and each command has a --help of its own', async () => {
    const { code, out } = await runAtoll('--help', at)
    expect(code).toBe(0)
    for (const command of ['serve', 'tenant', 'user', 'migrate', 'types', 'openapi', 'doctor', 'version'])
      expect(out).toMatch(new RegExp(`^ +${command} .*\\w`, 'm'))
    for (const command of ['tenant', 'user', 'serve']) {
      const help = await runAtoll(`${command} --help`, at)
      expect([help.code, help.err]).toEqual([0, ''])
      expect(help.out).toContain(`atoll ${command}`)
    }
    expect((await runAtoll('tenant create --help', at)).out).toContain('--admin-password')
  })

  test('`atoll` refuses unknown commands and options and missing arguments with code 2 and a sentence', async () => {
    const commands = ['bogus', 'tenant bogus', 'tenant create', 'user roles acme x', 'serve --bogus', 'version --bogus']
    const outcomes = await Promise.all(commands.map((command) => runAtoll(command, at)))
    for (const { code, out, err } of outcomes)
      expect([code, out, err]).toEqual([2, '', expect.stringMatching(/^[A-Z].+[.)]\n$/)])
  })

  test('commands that only print leave the folder empty', async () => {
    expect(readdirSync(at.at)).toEqual([])
  })
})

describe('invalid settings', () => {
  const cases: [string, string, { env?: Record<string, string>; file?: string }][] = [
    ['an unknown variable', 'ATOLL_BOGUS', { env: { ATOLL_BOGUS: '1' } }],
    ['a port that is not a number', 'ATOLL_PORT', { env: { ATOLL_PORT: 'abc' } }],
    ['a port that is too large', 'ATOLL_PORT', { env: { ATOLL_PORT: '70000' } }],
    ['an invalid choice', 'ATOLL_TENANT_HEADER', { env: { ATOLL_TENANT_HEADER: 'yes' } }],
    ['an atoll.json that is not JSON', 'atoll.json', { file: '{"ATOLL_HOST": ' }],
    ['an empty atoll.json', 'atoll.json', { file: '' }],
    ['an atoll.json that holds a list', 'atoll.json', { file: '["a"]' }],
    ['an atoll.json that holds a number', 'atoll.json', { file: '3' }],
    ['an unknown key in atoll.json', 'port', { file: '{"port": 80}' }],
    ['an invalid value in atoll.json', 'ATOLL_DURABILITY', { file: '{"ATOLL_DURABILITY": "some"}' }],
  ]
  test.each(cases)('`atoll serve` refuses %s with one sentence and exit code 2', async (_, name, { env, file }) => {
    const at = { at: createTempFolder(), env, timeout: 3_000 }
    if (file !== undefined) await Bun.write(join(at.at, 'atoll.json'), file)
    const { code, out, err } = await runAtoll('serve --json', at)
    const { code: problem, message } = JSON.parse(err)
    expect([code, out, problem]).toEqual([2, '', 'BAD_SETTING'])
    expect(message).toContain(name)
    expect(message).toMatch(/[.?]$/)
    const sentence = await runAtoll('serve', at)
    expect([sentence.code, sentence.out, sentence.err]).toEqual([2, '', `${message}\n`])
  })

  test('every command refuses an unreadable atoll.json with exit code 2', async () => {
    const at = { at: createTempFolder() }
    mkdirSync(join(at.at, 'atoll.json'))
    const { code, err } = await runAtoll('tenant list', at)
    expect([code, err]).toEqual([2, expect.stringContaining('atoll.json')])
  })
})

describe('messages about failures', () => {
  test('a registry that is not a database makes commands exit with code 1 and one sentence', async () => {
    const at = { at: createTempFolder() }
    await Bun.write(join(at.at, 'tenants/registry.db'), 'no database at all, but long enough to be read. '.repeat(100))
    for (const command of ['tenant list --json', 'tenant create acme', 'migrate']) {
      const { code, out, err } = await runAtoll(command, at)
      expect([command, code]).toEqual([command, 1])
      expect(out).toBe('')
      expect(err).toContain('registry.db is not a SQLite database.')
      expect(err.trim().split('\n')).toHaveLength(1)
    }
    const { code, json } = await runAtoll('doctor --json', at)
    const check = { check: 'registry', ok: false, message: expect.stringContaining('not a database') }
    expect([code, json.checks]).toMatchObject([1, expect.arrayContaining([check])])
  })

  test('a server whose data folder or port is in use exits with code 2 and a sentence', async () => {
    const at = { at: createTempFolder() }
    await using server = await startAtoll(at)
    const second = await runAtoll('serve --json', at)
    expect([second.code, second.out]).toEqual([2, ''])
    expect(JSON.parse(second.err).message).toBe(
      'Another process serves the folder "tenants". Stop it, or choose another ATOLL_TENANTS.',
    )
    const elsewhere = await runAtoll('serve --json', { at: createTempFolder(), env: { ATOLL_PORT: `${server.port}` } })
    expect([elsewhere.code, elsewhere.out]).toEqual([2, ''])
    expect(JSON.parse(elsewhere.err).message).toStartWith(`Port ${server.port} is already in use.`)
    expect((await apiCaller(server.url)('GET', '/health')).status).toBe(200)
  })
})

describe('`atoll tenant delete`', () => {
  const at = { at: createTempFolder() }
  beforeAll(() => createTenantByCli(at, 'acme'))

  test('`atoll tenant delete` without a terminal exits with code 2 and asks for --yes', async () => {
    const { code, out, err } = await runAtoll('tenant delete acme --json', at)
    expect([code, out, JSON.parse(err).code]).toEqual([2, '', 'USAGE'])
    expect(err).toContain('--yes')
    expect((await runAtoll('tenant list', at)).out).toContain('acme')
    expect((await runAtoll('tenant delete acme --yes', at)).code).toBe(0)
    expect((await runAtoll('tenant list', at)).out).not.toContain('acme')
  })
})

describe('roles on the command line', () => {
  const at = { at: createTempFolder() }
  beforeAll(() => createTenantByCli(at, 'acme'))

  test('a role that resembles a known one is refused with a suggestion', async () => {
    const { code, err } = await runAtoll('user create acme bob --password 12345678 --roles admni', at)
    expect([code, err]).toEqual([1, 'There is no role "admni". Did you mean "admin"?\n'])
    expect((await runAtoll('user roles acme bob user', at)).code).toBe(1)
  })

  test('a new role is accepted with a hint on its first use', async () => {
    const { code, err } = await runAtoll('user create acme eve --password 12345678 --roles auditor,user', at)
    expect([code, err]).toEqual([0, expect.stringContaining('"auditor" is a new role')])
    expect((await runAtoll('user create acme kim --password 12345678 --roles auditor', at)).err).toBe('')
  })
})

describe('the start of a server', () => {
  test.each([
    [
      'an address that this machine does not have',
      { ATOLL_HOST: '999.1.1.1' },
      '"999.1.1.1" is not an address of this machine.',
    ],
    ['an invalid address', { ATOLL_HOST: '::zz' }, '"::zz" is not an address of this machine.'],
    ['a folder that cannot be created', { ATOLL_TENANTS: '/proc/x' }, '"/proc/x" cannot be written'],
    [
      'a database that does not answer',
      { ATOLL_DATABASE_URL: 'postgres://127.0.0.1:1/x' },
      'PostgreSQL is not responding.',
    ],
  ] as [string, Record<string, string>, string][])(
    '`atoll serve` exits with code 2 and one sentence for %s',
    async (_, env, sentence) => {
      const { code, out, err } = await runAtoll('serve', { at: createTempFolder(), env })
      expect([code, out]).toEqual([2, ''])
      expect(err).toStartWith(sentence)
      expect(err.trim().split('\n')).toHaveLength(1)
    },
  )
})

describe('`atoll completion`', () => {
  test('the completion of bash offers the commands and options at the cursor', async () => {
    const at = { at: createTempFolder() }
    const { out } = await runAtoll('completion bash', at)
    const complete = async (...words: string[]) => {
      const script = `${out}\nCOMP_WORDS=(atoll ${words.map((word) => `'${word}'`).join(' ')})\nCOMP_CWORD=${words.length}\n_atoll\necho "\${COMPREPLY[@]}"`
      return (await Bun.$`bash -c ${script}`.text()).trim().split(' ')
    }
    expect(await complete('ten')).toEqual(['tenant'])
    expect(await complete('tenant', 's')).toEqual(['show', 'suspend'])
    expect(await complete('tenant', 'create', 'acme', '--admin-p')).toEqual(['--admin-password'])
    expect((await runAtoll('completion zsh', at)).out).toContain('atoll')
    const fish = (await runAtoll('completion fish', at)).out
    expect(fish).toContain(
      "'__fish_seen_subcommand_from tenant; and __fish_seen_subcommand_from create' -a '--json --host",
    )
    expect(fish).toContain("'__fish_seen_subcommand_from user; and __fish_seen_subcommand_from create' -a '")
    expect((await runAtoll('completion tcsh', at)).code).toBe(2)
  })
})

test('`atoll help` prints the same help for a subcommand as --help', async () => {
  const at = { at: createTempFolder() }
  const [help, option] = [await runAtoll('help tenant create', at), await runAtoll('tenant create --help', at)]
  expect([help.code, help.err]).toEqual([0, ''])
  expect(help.out).toBe(option.out)
  expect((await runAtoll('help tenant bogus', at)).code).toBe(2)
})

test('`atoll tenant create` without an administrator hints at `user create`, and reads a password from a pipe', async () => {
  const at = { at: createTempFolder() }
  expect((await runAtoll('tenant create acme', at)).out).toContain('user create acme <username> --roles admin,user')
  const piped = await runAtoll('tenant create beta --admin-username ada', { ...at, stdin: 'correct-horse\n' })
  expect([piped.code, piped.out]).toEqual([0, 'Created the tenant "beta".\n'])
  await using server = await startAtoll(at)
  await signIn(server.url, 'beta', 'ada', 'correct-horse')
})
