import { Database } from 'bun:sqlite'
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { databaseUrl } from '../storage/engines'
import { callApi } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(60_000)

const CHECK_INTERVAL_MS = 1_000 // within which all get the same answer

test('GET /ready answers 200 to everybody while the server can serve tenants', async () => {
  const { status, body } = await callApi('GET', 'http://localhost/ready')
  expect([status, body]).toEqual([200, { status: 'ready' }])
})

const strace = Bun.which('strace')
if (!strace) console.warn('SKIPPED: the test of a failing disk, because strace is not installed.')

describe.skipIf(!!databaseUrl)('a server that is not ready', () => {
  async function startServer(env: Record<string, string> = {}) {
    const at = { at: createTempFolder(), env }
    await createTenantByCli(at, 'acme')
    const server = await startAtoll(at)
    const call = apiCaller(server.url)
    const readiness = async () => {
      const { status, body } = await call('GET', '/ready')
      return status === 200 ? body.status : `${status} ${body.code} ${body.message}`
    }
    return { server, readiness, folder: join(at.at, 'tenants') }
  }

  test('it says that the disk is almost full, and stays healthy', async () => {
    const { server, readiness } = await startServer({ ATOLL_MIN_FREE: '900000G' })
    await using _ = server
    expect(await readiness()).toBe(
      '503 NOT_READY The disk of the data folder is almost full. Make room, or lower ATOLL_MIN_FREE.',
    )
    expect((await apiCaller(server.url)('GET', '/health')).status).toBe(200)
  })

  test('it says that the keys are unusable without their place, and is ready again once they are back', async () => {
    const { server, readiness, folder } = await startServer()
    await using _ = server
    expect(await readiness()).toBe('ready')
    renameSync(join(folder, 'secrets.json'), join(folder, 'away.json'))
    const flaw = '503 NOT_READY The keys of the server cannot be used. "atoll doctor" says why.'
    await waitUntil(readiness, (answer) => answer === flaw)
    renameSync(join(folder, 'away.json'), join(folder, 'secrets.json'))
    await waitUntil(readiness, (answer) => answer === 'ready')
  })

  test('it says that the registry cannot be written while another process holds it, and is ready again after that', async () => {
    const { server, readiness, folder } = await startServer()
    await using _ = server
    expect(await readiness()).toBe('ready')
    const holder = new Database(join(folder, 'registry.db'))
    holder.run('begin immediate')
    await waitUntil(readiness, (answer) => answer.includes('The registry of tenants'))
    holder.run('rollback')
    holder.close()
    await waitUntil(readiness, (answer) => answer === 'ready')
  })

  test.skipIf(!strace)(
    'it says that the disk of a tenant fails, and is ready again a second after the first write that succeeds',
    async () => {
      const { server, readiness, folder } = await startServer({ ATOLL_DURABILITY: 'full' })
      await using _ = server
      const call = apiCaller(server.url, await signIn(server.url, 'acme'))
      const create = () => call('POST', '/api/blueprints', { key: `k${crypto.randomUUID()}`, name: 'K', fields: [] })
      expect(await readiness()).toBe('ready')
      const log = join(folder, 'acme/data.db-wal')
      const failing = Bun.spawn(
        [strace!, '-f', '-qq', '-o', '/dev/null', '-P', log, '-e', 'inject=fdatasync:error=EIO', '-p', `${server.pid}`],
        { stdout: 'ignore', stderr: 'ignore' },
      )
      try {
        await waitUntil(create, ({ status }) => status === 503)
        const flaw = '503 NOT_READY The storage of a tenant has failed and is being reopened.'
        await waitUntil(readiness, (answer) => answer === flaw)
        // Each check tries a write of its own, which fails, too.
        await Bun.sleep(CHECK_INTERVAL_MS)
        expect(await readiness()).toBe(flaw)
      } finally {
        failing.kill('SIGTERM')
        await failing.exited
      }
      await waitUntil(create, ({ status }) => status === 201)
      await Bun.sleep(CHECK_INTERVAL_MS)
      expect(await readiness()).toBe('ready')
    },
  )

  test('a server with ATOLL_DRAIN serves on after SIGTERM while it says that it is stopping, and then ends', async () => {
    const { server, readiness } = await startServer({ ATOLL_DRAIN: '2' })
    await using _ = server
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    const ended = server.end('SIGTERM')
    await waitUntil(readiness, (answer) => answer === '503 NOT_READY The server is stopping.')
    expect((await call('GET', '/api/me')).status).toBe(200)
    expect(await ended).toBe(0)
  })
})
