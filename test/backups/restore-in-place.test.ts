import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { binaryPath } from '../fakes/binary'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  type RunningAtoll,
  readMetric,
  runAtoll,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { createDatabase } from '../fakes/postgres'
import { databaseUrl } from '../storage/engines'
import { waitUntil } from '../wait-until'

setDefaultTimeout(180_000)

const THINGS = '/api/blueprints/things/entities'
const blueprint = {
  key: 'things',
  name: 'Things',
  fields: [{ key: 'text', type: 'text' }],
  permissions: ['create', 'read'].map((operation) => ({ operation, scope: 'tenant', roleBased: ['admin'] })),
}

type Answer = { status: number; code?: string; retryAfter: string | null }

/** A client of one tenant that notes what each request is answered. */
function noteAnswers(url: string, headers: Record<string, string>) {
  const answers: Answer[] = []
  const note = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${url}${path}`, { ...init, headers })
    const text = await response.text()
    const code = response.ok ? undefined : JSON.parse(text).code
    answers.push({ status: response.status, code, retryAfter: response.headers.get('retry-after') })
    return { status: response.status, text }
  }
  const upload = (content: string) => {
    const body = new FormData()
    body.set('file', new Blob([content]), 'upload.txt')
    return note('/api/files', { method: 'POST', body })
  }
  return { answers, read: note, upload }
}

const summarize = (answers: Answer[]) =>
  [
    ...new Set(answers.map(({ status, code, retryAfter }) => [status, code, retryAfter].filter(Boolean).join(' '))),
  ].sort()

describe('a restore in place', () => {
  const at = { at: createTempFolder(), env: { ATOLL_LOG_LEVEL: 'warn' } as Record<string, string> }
  let server: RunningAtoll
  let headers: Record<string, string>
  let kept: { _id: string }
  const countThings = async () =>
    Number((await apiCaller(server.url, headers)('GET', `${THINGS}?$count=true&$limit=1`)).headers.get('x-total-count'))
  const addThing = () => apiCaller(server.url, headers)('POST', THINGS, { text: 'later' })
  const restore = ['restore', 'backups/acme', '--yes', '--json']

  beforeAll(async () => {
    if (databaseUrl) at.env.ATOLL_DATABASE_URL = await createDatabase(databaseUrl)
    await createTenantByCli(at, 'acme')
    server = await startAtoll(at)
    headers = await signIn(server.url, 'acme')
    await apiCaller(server.url, headers)('POST', '/api/blueprints', blueprint)
    for (let number = 0; number < 3; number++) await addThing()
    kept = JSON.parse((await noteAnswers(server.url, headers).upload('kept')).text)
    expect((await runAtoll('backup --to backups --json', at)).code).toBe(0)
  })
  afterAll(async () => {
    await server.end('SIGKILL')
  })

  const readKept = async () => (await noteAnswers(server.url, headers).read(`/api/files/${kept._id}/content`)).text

  /** Reads and uploads all the time until `work` has ended, and returns all answers. */
  async function besideRequests(work: () => Promise<unknown>): Promise<Answer[]> {
    const client = noteAnswers(server.url, headers)
    let isOver = false
    let number = 0
    const loops = [
      async () => client.read(`${THINGS}?$limit=1`),
      async () => client.read(`/api/files/${kept._id}`),
      async () => client.upload(`upload ${number++}`),
      async () => client.upload(`upload ${number++}`),
    ].map(async (ask) => {
      while (!isOver) await ask()
    })
    await work().finally(() => {
      isOver = true
    })
    await Promise.all(loops)
    return client.answers
  }

  test('a restore pauses the tenant with 503 RESTORING beside reads and uploads, and no request meets anything else', async () => {
    await addThing()
    let restored: Awaited<ReturnType<typeof runAtoll>> | undefined
    const answers = await besideRequests(async () => {
      restored = await runAtoll(restore, at)
    })
    expect([restored!.code, restored!.err]).toEqual([0, expect.any(String)])
    expect(summarize(answers)).toEqual(['200', '201', '503 RESTORING 2'])
    expect(await readMetric(server.url, 'atoll_http_requests_total', { status: '503' })).toBeGreaterThan(0)
    expect(await countThings()).toBe(3)
    if (!databaseUrl) expect(existsSync(join(at.at, restored!.json.restored[0].trash, 'data.db'))).toBeTrue()
    expect((await addThing()).status).toBe(201)
  })

  test('a restore is undone when its process is killed at any moment, without a restart of the server', async () => {
    for (const delay of [300, 1_100, 1_600, 2_100]) {
      await addThing()
      const before = await countThings()
      let hasEnded = false
      const answers = await besideRequests(async () => {
        const env = { ...at.env, PATH: process.env.PATH }
        const child = Bun.spawn([binaryPath(), ...restore], { cwd: at.at, env, stderr: 'ignore', stdout: 'ignore' })
        hasEnded = await Promise.race([child.exited.then(() => true), Bun.sleep(delay).then(() => false)])
        child.kill('SIGKILL')
        await child.exited
        await waitUntil(async () => (await apiCaller(server.url, headers)('GET', `${THINGS}?$limit=1`)).status === 200)
      })
      const unexpected = summarize(answers).filter((answer) => !['200', '201', '503 RESTORING 2'].includes(answer))
      expect(unexpected).toEqual([])
      // Killed after its registration it has ended as well.
      expect([before, 3]).toContain(await countThings())
      if (hasEnded) expect(await countThings()).toBe(3)
    }
    expect((await runAtoll('doctor --deep', at)).out).not.toContain('PROBLEM')
  })

  test.skipIf(!!databaseUrl)(
    'a restore that fails is undone whole: the tenant has what it had, and takes writes',
    async () => {
      await addThing()
      const before = await countThings()
      const trash = join(at.at, 'tenants', '.trash')
      renameSync(trash, `${trash}-away`)
      writeFileSync(trash, 'not a folder')
      const failed = await runAtoll(restore, at)
      rmSync(trash)
      renameSync(`${trash}-away`, trash)
      expect([failed.code, failed.err]).toEqual([2, expect.stringContaining('cannot be written')])
      expect(await countThings()).toBe(before)
      expect((await addThing()).status).toBe(201)
      expect(await readKept()).toBe('kept')
    },
  )

  test('a restore refuses a moment that the backup named by its own address does not have, and touches nothing', async () => {
    const before = await countThings()
    const name = readdirSync(join(at.at, 'backups/acme')).find((entry) => /^\d/.test(entry))!
    const moments = [
      ['2001-01-01', '--as', 'a2'],
      ['2099-01-01', '--yes'],
    ]
    for (const [moment, ...way] of moments) {
      const refused = await runAtoll(['restore', `backups/acme/${name}`, '--at', moment!, ...way, '--json'], at)
      expect([refused.code, JSON.parse(refused.err.trim().split('\n').at(-1)!).code]).toEqual([1, 'BACKUP_NOT_FOUND'])
    }
    expect((await runAtoll('tenant list --json', at)).json).toHaveLength(1)
    expect(await countThings()).toBe(before)
  })

  const staged = join('.staging', 'interrupted')
  const inData = (...path: string[]) => join(at.at, 'tenants', ...path)
  /** How far the exchange of the files had come when its process died. */
  const STATES: Record<string, (old: string) => void> = {
    'before it touched a file': () => {},
    'when the database was moved without its log': (old) => renameSync(inData('acme', 'data.db'), join(old, 'data.db')),
    'when nothing was in its place': (old) => {
      for (const name of readdirSync(inData('acme')).filter((name) => name.startsWith('data.db')))
        renameSync(inData('acme', name), join(old, name))
    },
    'when the new database was in its place': (old) => {
      STATES['when nothing was in its place']!(old)
      renameSync(inData(staged, 'data.db'), inData('acme', 'data.db'))
    },
  }
  describe.skipIf(!!databaseUrl)('whose process died', () =>
    test.each(Object.keys(STATES))('that was interrupted %s is undone when the server starts', async (state) => {
      const before = await countThings()
      await server.end('SIGKILL')
      const trash = join('.trash', 'acme-1')
      mkdirSync(inData(staged), { recursive: true })
      mkdirSync(inData(trash), { recursive: true })
      writeFileSync(inData(staged, 'data.db'), 'the new data')
      using registry = new Database(inData('registry.db'))
      const pending = { uid: 'new', since: '2026-11-28T12:00:00.000Z', staged, trash }
      registry.run('update tenants set restoring = ?', [JSON.stringify(pending)])
      STATES[state]!(inData(trash))
      server = await startAtoll(at)
      expect(await readMetric(server.url, 'atoll_faults_total', { fault: 'restore-undone' })).toBe(1)
      expect(await countThings()).toBe(before)
      expect([existsSync(inData(staged)), existsSync(inData(trash))]).toEqual([false, false])
      expect((await addThing()).status).toBe(201)
      const events = registry.query(
        "select count(*) as n from operator_events where event_name = 'tenant-restore-undone'",
      )
      expect((events.get() as { n: number }).n).toBeGreaterThan(0)
      await server.end('SIGTERM')
      expect(await server.logged).toContain('"event":"restore-undone"')
      server = await startAtoll(at)
    }),
  )
})
