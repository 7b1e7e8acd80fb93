// Starts PostgreSQL servers on a free port of this machine. A server is removed with its data when it is stopped.
import { chownSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { createTempFolder } from '../temp-folder'

export type PostgresServer = {
  /** The URL of an empty database. */
  url: string
  port: number
  /** Stops the server as a crash does. */
  kill(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

const DEBIAN_POSTGRES_FOLDER = '/usr/lib/postgresql'

/** Returns the folder of `initdb` and `postgres`, or undefined when they are not installed. */
export function findPostgresBin(): string | undefined {
  const [newest] = existsSync(DEBIAN_POSTGRES_FOLDER)
    ? readdirSync(DEBIAN_POSTGRES_FOLDER).sort((one, other) => Number(other) - Number(one))
    : []
  const debianBin = newest ? join(DEBIAN_POSTGRES_FOLDER, newest, 'bin') : undefined
  if (debianBin && existsSync(join(debianBin, 'initdb'))) return debianBin
  const inPath = Bun.which('initdb')
  return inPath ? join(inPath, '..') : undefined
}

/** Creates a separate database on the server that the tests share, and returns its URL. */
export async function createDatabase(shared: string): Promise<string> {
  const name = `own_${crypto.randomUUID().replaceAll('-', '')}`
  await queryDatabase(shared, `create database ${name}`)
  return `${Object.assign(new URL(shared), { pathname: `/${name}` })}`
}

/** Starts a server. With `durable` the server waits for the disk at every commit. */
export async function startPostgres({ durable = false } = {}): Promise<PostgresServer> {
  const bin = findPostgresBin()
  if (!bin)
    throw new Error('PostgreSQL is not installed: its programs are neither in PATH nor where Debian installs them.')
  const folder = createTempFolder('postgres')
  const owner = unprivilegedUser()
  if (owner) chownSync(folder, owner.uid, owner.gid)
  // PostgreSQL refuses to be run by root.
  const as = owner ? ['setpriv', `--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups'] : []
  const data = join(folder, 'data')
  const initdbRun = Bun.spawnSync(
    [...as, join(bin, 'initdb'), '-D', data, '-U', 'owner', '-A', 'trust', '-E', 'UTF8', '-N'],
    { cwd: folder, env: { PATH: process.env.PATH, LC_ALL: 'C' } },
  )
  if (!initdbRun.success) throw new Error(`initdb failed: ${initdbRun.stderr}`)

  const port = await freePort()
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: folder,
    max_connections: 300,
    fsync: durable ? 'on' : 'off',
    log_min_messages: 'fatal',
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const address = (database: string) => `postgres://owner@127.0.0.1:${port}/${database}`
  let server: Bun.Subprocess | undefined

  const spawnServer = () =>
    Bun.spawn([...as, join(bin, 'postgres'), '-D', data, ...options], {
      cwd: folder,
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
      stdout: 'ignore',
      stderr: 'ignore',
    })
  async function start() {
    server = spawnServer()
    const until = performance.now() + 20_000
    for (;;)
      try {
        return await queryDatabase(address('postgres'), 'select 1')
      } catch (error) {
        if (performance.now() > until) throw error
        await Bun.sleep(50)
        // After a crash it does not start before the last process of the previous server has ended.
        if (server.exitCode !== null) server = spawnServer()
      }
  }
  async function endServer(signal: NodeJS.Signals) {
    server?.kill(signal)
    await server?.exited
  }
  const killServer = () => void server?.kill('SIGQUIT')
  process.once('exit', killServer)
  await start()
  // Most databases have the collation of a language, which differs from ours. PostgreSQL 14 only has those of the
  // system.
  const [{ modern }] = await queryDatabase(
    address('postgres'),
    "select current_setting('server_version_num')::int >= 150000 modern",
  )
  const language = modern ? "template template0 locale 'C' locale_provider icu icu_locale 'en-US'" : ''
  await queryDatabase(address('postgres'), `create database atoll ${language}`)
  return {
    url: address('atoll'),
    port,
    kill: () => endServer('SIGKILL'),
    start: async () => void (await start()),
    async stop() {
      await endServer('SIGINT')
      process.off('exit', killServer)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Runs a query on a connection of its own, as the role of the URL, and returns the rows. */
export async function queryDatabase(url: string, sql: string, values?: unknown[]) {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  await client.connect()
  try {
    return (await client.query(sql, values)).rows
  } finally {
    await client.end()
  }
}

/** Starts PgBouncer in transaction mode before a server; undefined when it is not installed. */
export async function startBouncer(server: string) {
  const program = Bun.which('pgbouncer') ?? (existsSync('/usr/sbin/pgbouncer') ? '/usr/sbin/pgbouncer' : undefined)
  if (!program) return
  const { hostname, port: target, pathname, username } = new URL(server)
  const folder = createTempFolder('bouncer')
  const owner = unprivilegedUser()
  if (owner) chownSync(folder, owner.uid, owner.gid)
  const port = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  const to = `host=${hostname} port=${target} dbname=${pathname.slice(1)} user=${username}`
  await Bun.write(
    file,
    `[databases]\natoll = ${to}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\n` +
      'auth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 500\nlogfile =\n',
  )
  const as = owner ? ['setpriv', `--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups'] : []
  const child = Bun.spawn([...as, program, '-q', file], { cwd: folder, stdout: 'ignore', stderr: 'ignore' })
  const url = `postgres://${username}@127.0.0.1:${port}/atoll`
  const until = performance.now() + 10_000
  for (;;)
    try {
      await queryDatabase(url, 'select 1')
      break
    } catch (error) {
      if (performance.now() > until || child.exitCode !== null) throw error
      await Bun.sleep(50)
    }
  return {
    url,
    async stop() {
      child.kill('SIGINT')
      await Promise.race([child.exited, Bun.sleep(1_000)])
      child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function unprivilegedUser() {
  if (process.getuid?.() !== 0) return
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const [, , uid, gid] = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody') ?? []
  return { uid: Number(uid), gid: Number(gid) }
}

const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

// `bun test/fakes/postgres.ts <command…>` runs a command beside a server whose address is in TEST_DATABASE_URL.
if (import.meta.main) {
  const server = await startPostgres()
  const child = Bun.spawn(process.argv.slice(2), {
    env: { ...process.env, TEST_DATABASE_URL: server.url },
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  const code = await child.exited
  await server.stop()
  process.exit(code)
}
