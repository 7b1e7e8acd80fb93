import { Database } from 'bun:sqlite'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { apiCaller } from '../fakes/cli'
import { COMPANIES, createdAt, emailOf, makeContact, STAGES, USER_PASSWORD, USERS } from './contacts'

const SUPERUSER = { identity: 'root@example.com', password: USER_PASSWORD }
const BATCH_ROWS = 500
/** How many rows come by requests, which are measured; the others are written into the file while nobody serves it. */
const ROWS_BY_BATCH = 5_000
const START_TIMEOUT_MS = 15_000

/** Ids have 15 small letters and digits. */
export const idOf = (kind: 'company' | 'contact', n: number) => kind + `${n}`.padStart(15 - kind.length, '0')
export const makeRecord = (n: number) => {
  const { company, ...contact } = makeContact(n)
  return { ...contact, company: idOf('company', company) }
}

/** Starts the program on a folder, on a free port. It ends with the block of `await using`. */
export async function startPocketBase(program: string, folder: string, env: Record<string, string> = {}) {
  const probe = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const { port } = probe
  await probe.stop(true)
  const url = `http://127.0.0.1:${port}`
  const startedAt = performance.now()
  const child = Bun.spawn([program, 'serve', `--http=127.0.0.1:${port}`, `--dir=${folder}`], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  const end = async () => {
    child.kill()
    await child.exited
  }
  while (!(await fetch(`${url}/api/health`).catch(() => undefined))?.ok) {
    if (child.exitCode !== null || performance.now() - startedAt > START_TIMEOUT_MS) {
      await end()
      throw new Error(`${program} does not answer.`)
    }
    await Bun.sleep(1)
  }
  return { url, pid: child.pid, ms: performance.now() - startedAt, end, [Symbol.asyncDispose]: end }
}

/** Fills a folder with the contacts. Returns how many a batch request creates per second. */
export async function fillPocketBase(program: string, folder: string, rows: number): Promise<number> {
  mkdirSync(folder, { recursive: true })
  const upsert = [program, 'superuser', 'upsert', SUPERUSER.identity, SUPERUSER.password, `--dir=${folder}`]
  if (await Bun.spawn(upsert, { stdio: ['ignore', 'ignore', 'inherit'] }).exited)
    throw new Error(`${program} created no superuser.`)
  const byBatch = Math.min(rows, ROWS_BY_BATCH)
  let perSecond: number
  {
    await using server = await startPocketBase(program, folder)
    const signedIn = await send(server.url, {}, 'POST', '/api/collections/_superusers/auth-with-password', SUPERUSER)
    const headers = { authorization: signedIn.token as string }
    await createCollections(server.url, headers)
    perSecond = await createByBatch(server.url, headers, byBatch)
  }
  writeRows(join(folder, 'data.db'), byBatch, rows)
  return perSecond
}

async function createCollections(url: string, headers: Record<string, string>) {
  const batch = { enabled: true, maxRequests: BATCH_ROWS, timeout: 60 }
  await send(url, headers, 'PATCH', '/api/settings', { logs: { maxDays: 0 }, batch })
  const isSignedIn = "@request.auth.id != ''"
  const rules = Object.fromEntries(['list', 'view', 'create', 'update', 'delete'].map((n) => [`${n}Rule`, isSignedIn]))
  const dates = [
    { name: 'created', type: 'autodate', onCreate: true },
    { name: 'updated', type: 'autodate', onCreate: true, onUpdate: true },
  ]
  const companies = await send(url, headers, 'POST', '/api/collections', {
    ...{ name: 'companies', type: 'base', ...rules },
    fields: [{ name: 'name', type: 'text' }, ...dates],
  })
  const requests = Array.from({ length: COMPANIES }, (_, n) => ({ id: idOf('company', n), name: `Company ${n}` }))
  for (let from = 0; from < COMPANIES; from += BATCH_ROWS)
    await sendBatch(url, headers, 'companies', requests.slice(from, from + BATCH_ROWS))
  await send(url, headers, 'POST', '/api/collections', {
    ...{ name: 'contacts', type: 'base', ...rules },
    fields: [
      { name: 'name', type: 'text', required: true },
      { name: 'email', type: 'email' },
      { name: 'stage', type: 'select', values: STAGES, maxSelect: 1 },
      { name: 'worth', type: 'number' },
      { name: 'company', type: 'relation', collectionId: companies.id, maxSelect: 1 },
      { name: 'active', type: 'bool' },
      { name: 'born', type: 'date' },
      { name: 'notes', type: 'text' },
      ...dates,
    ],
    indexes: ['name', 'stage', 'worth', 'company', 'created'].map(
      (field) => `CREATE INDEX idx_contacts_${field} ON contacts (${field})`,
    ),
  })
  for (let n = 0; n < USERS; n++) {
    const passwords = { password: USER_PASSWORD, passwordConfirm: USER_PASSWORD }
    await send(url, headers, 'POST', '/api/collections/users/records', { email: emailOf(n), ...passwords })
  }
}

async function createByBatch(url: string, headers: Record<string, string>, rows: number) {
  const records = Array.from({ length: rows }, (_, n) => ({ id: idOf('contact', n), ...makeRecord(n) }))
  const startedAt = performance.now()
  for (let from = 0; from < rows; from += BATCH_ROWS)
    await sendBatch(url, headers, 'contacts', records.slice(from, from + BATCH_ROWS))
  return rows / ((performance.now() - startedAt) / 1_000)
}

const sendBatch = (url: string, headers: Record<string, string>, collection: string, bodies: object[]) =>
  send(url, headers, 'POST', '/api/batch', {
    requests: bodies.map((body) => ({ method: 'POST', url: `/api/collections/${collection}/records`, body })),
  })

function writeRows(file: string, from: number, upTo: number) {
  const db = new Database(file)
  const columns = ['id', 'name', 'email', 'stage', 'worth', 'company', 'active', 'born', 'notes', 'created', 'updated']
  const insert = db.prepare(`insert into contacts (${columns}) values (${columns.map(() => '?')})`)
  db.transaction(() => {
    for (let n = from; n < upTo; n++) {
      const { name, email, stage, worth, company, active, born, notes } = makeRecord(n)
      const time = createdAt(n).replace('T', ' ')
      const values = [name, email, stage, worth, company, active, `${born} 00:00:00.000Z`, notes, time, time]
      insert.run(idOf('contact', n), ...values)
    }
  })()
  insert.finalize()
  db.exec('pragma wal_checkpoint(truncate)')
  db.close(true)
}

/** Signs a user in, and returns the headers of their requests. */
export async function signInToPocketBase(url: string): Promise<Record<string, string>> {
  const body = { identity: emailOf(0), password: USER_PASSWORD }
  const { token } = await send(url, {}, 'POST', '/api/collections/users/auth-with-password', body)
  return { authorization: token, 'content-type': 'application/json' }
}

async function send(url: string, headers: Record<string, string>, method: string, path: string, body: object) {
  const answer = await apiCaller(url, headers)(method, path, body)
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}
