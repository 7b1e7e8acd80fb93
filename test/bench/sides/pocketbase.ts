import { Database } from 'bun:sqlite'
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  contactId,
  createdAt,
  emailOf,
  FITTING_INDEXES,
  MEMBER_EMAIL,
  makeRecord,
  USER_PASSWORD,
  workspaceId,
  workspaceOf,
} from '../contacts'
import type { SentRequest } from '../load'
import type { Filter, ListQuestion, Question } from '../questions'
import { changeListRule, createByBatch, createCollections, createSuperuser, signInAs } from './pocketbase-setup'
import { copyFolder, measureRoom, type RowNeeds, type Side } from './side'

const RECORDS = '/api/collections/contacts/records'
const SIGN_IN = '/api/collections/users/auth-with-password'
/** Rows created by measured requests; the others are written to the file while no server runs. */
const ROWS_BY_BATCH = 5_000
const START_TIMEOUT_MS = 15_000

export type PocketBaseOptions = {
  program: string
  folder: string
  rows: number
  /** The setting by which this program flushes each commit. PocketBase itself has none. */
  durableEnv?: Record<string, string>
}

export function createPocketBaseSide({ program, folder, rows, durableEnv }: PocketBaseOptions): Side {
  // PocketBase writes each change of a collection into a folder beside that of its data, and repeats it at a start there.
  const toFolder = (name: string) => join(folder, name, 'data')
  const folders = { single: toFolder('single'), fitting: toFolder('fitting'), member: toFolder('member') }
  const headers = { user: {} as Record<string, string>, member: {} as Record<string, string> }

  async function fill() {
    mkdirSync(folders.single, { recursive: true })
    await createSuperuser(program, folders.single)
    const byBatch = Math.min(rows, ROWS_BY_BATCH)
    let perSecond: number
    {
      await using server = await startPocketBase(program, folders.single)
      const superuser = await createCollections(server.url)
      perSecond = await createByBatch(server.url, superuser, byBatch)
      headers.user = await signInAs(server.url, emailOf(0))
      headers.member = await signInAs(server.url, MEMBER_EMAIL)
    }
    writeRows(folders.single, byBatch, rows)
    cpSync(folders.single, folders.fitting, { recursive: true })
    createFittingIndexes(folders.fitting)
    cpSync(folders.fitting, folders.member, { recursive: true })
    await using server = await startPocketBase(program, folders.member)
    await changeListRule(server.url, 'workspace.members.id ?= @request.auth.id')
    return perSecond
  }

  async function start({ caller, writes, isDurable, hasSingleIndexes }: RowNeeds) {
    const from = folders[caller ?? (hasSingleIndexes ? 'single' : 'fitting')]
    const at = writes ? copyFolder(from, toFolder('copy'), { isSynced: true }) : from
    const server = await startPocketBase(program, at, isDurable ? durableEnv : undefined)
    return { ...server, headers: { ...headers[caller ?? 'user'], 'content-type': 'application/json' } }
  }

  const measureSize = () => measureRoom(join(folders.single, 'data.db'))
  return { name: 'PocketBase', fill, start, measureSize, toRequest, isNeverDurable: !durableEnv }
}

/** Starts the program on a folder, on a free port. It ends with the block of `await using`. */
async function startPocketBase(program: string, folder: string, env: Record<string, string> = {}) {
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
  return { url, pid: child.pid, startMs: performance.now() - startedAt, [Symbol.asyncDispose]: end }
}

function withDatabase(folder: string, use: (db: Database) => void) {
  const db = new Database(join(folder, 'data.db'))
  use(db)
  db.exec('pragma wal_checkpoint(truncate)')
  db.close()
}

function writeRows(folder: string, from: number, upTo: number) {
  const columns = ['id', 'name', 'email', 'stage', 'worth', 'company', 'active', 'born', 'notes', 'workspace']
  const all = [...columns, 'created', 'updated']
  withDatabase(folder, (db) => {
    const insert = db.prepare(`insert into contacts (${all}) values (${all.map(() => '?')})`)
    db.transaction(() => {
      for (let n = from; n < upTo; n++) {
        const { name, email, stage, worth, company, active, born, notes } = makeRecord(n)
        const time = createdAt(n).replace('T', ' ')
        const texts = [`${born} 00:00:00.000Z`, notes, workspaceId(workspaceOf(n)), time, time]
        insert.run(contactId(n), name, email, stage, worth, company, active, ...texts)
      }
    })()
    insert.finalize()
  })
}

const createFittingIndexes = (folder: string) =>
  withDatabase(folder, (db) => {
    for (const [n, fields] of FITTING_INDEXES.entries())
      db.exec(`create index fitting_${n} on contacts (${fields}); analyze`)
  })

const COMPARISONS = { $lt: '<', $lte: '<=', $gt: '>', $gte: '>=', $ne: '!=', $like: '~' } as const
const toLiteral = (value: Filter['value']) => (typeof value === 'string' ? `'${value}'` : `${value}`)

function toCondition({ field, operator, value }: Filter) {
  if (operator === '$in' || operator === '$nin') throw new Error(`PocketBase's filters have no ${operator}.`)
  return `${field}${operator ? COMPARISONS[operator] : '='}${toLiteral(value)}`
}

function toPath({ filters, sort = '-created', words = [], isCounted, isPopulated }: ListQuestion): string {
  const conditions = [
    ...filters.map(toCondition),
    ...words.map((word) => `(name~'${word}'||email~'${word}'||notes~'${word}')`),
  ]
  const parameters = [
    `filter=${encodeURIComponent(conditions.join('&&'))}`,
    `sort=${sort}`,
    'perPage=20',
    ...(isCounted ? [] : ['skipTotal=1']),
    ...(isPopulated ? ['expand=company'] : []),
  ]
  return `${RECORDS}?${parameters.join('&')}`
}

function toRequest(question: Question): SentRequest {
  switch (question.kind) {
    case 'get':
      return { method: 'GET', path: `${RECORDS}/${contactId(question.contact)}` }
    case 'list':
      return { method: 'GET', path: toPath(question) }
    case 'create':
      return { method: 'POST', path: RECORDS, body: JSON.stringify(makeRecord(question.n)) }
    case 'update': {
      const path = `${RECORDS}/${contactId(question.contact)}`
      return { method: 'PATCH', path, body: JSON.stringify(question.change) }
    }
    case 'sign-in': {
      const body = { identity: emailOf(question.user), password: USER_PASSWORD }
      return { method: 'POST', path: SIGN_IN, body: JSON.stringify(body) }
    }
  }
}
