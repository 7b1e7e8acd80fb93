import { Database } from 'bun:sqlite'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { companyId, contactId, makeRecord, workspaceOf } from '../contacts'
import type { SentRequest } from '../load'
import type { ListQuestion, Question } from '../questions'
import { companyNumbers, createFittingIndexes, createSingleIndexes, createTables, toSelect } from './plain-sql'
import { copyFolder, measureRoom, type RowNeeds, type Side } from './side'

export const LIMIT_FILES = { data: 'data.db', headers: 'headers.json', lists: 'lists.json' }
/** The statements of a kind of list, which the server prepares when it starts. */
export type PlainList = { sql: string; countSql?: string }

/** Atoll's response for a contact, which the bare server returns as well. */
export type Answers = { json: string[]; headers: Record<string, string> }

export function createLimitSide(folder: string, readAnswers: () => Promise<Answers>): Side {
  const folders = { fitting: join(folder, 'fitting'), single: join(folder, 'single') }
  const lists: PlainList[] = []
  const places = new Map<string, number>()

  async function fill() {
    const { json, headers } = await readAnswers()
    mkdirSync(folders.single, { recursive: true })
    writeFileSync(join(folders.single, LIMIT_FILES.headers), JSON.stringify(headers))
    const startedAt = performance.now()
    withDatabase(folders.single, (db) => {
      db.exec('pragma journal_mode = wal')
      for (const sql of [...createTables('sqlite'), ...createSingleIndexes()]) db.exec(sql)
      insertRows(db, json)
    })
    const perSecond = json.length / ((performance.now() - startedAt) / 1_000)
    cpSync(folders.single, folders.fitting, { recursive: true })
    withDatabase(folders.fitting, (db) => {
      for (const sql of createFittingIndexes()) db.exec(sql)
      createWordIndexes(db)
      db.exec('analyze')
    })
    return perSecond
  }

  async function start({ writes, isDurable, hasSingleIndexes }: RowNeeds) {
    const from = hasSingleIndexes ? folders.single : folders.fitting
    const at = writes ? copyFolder(from, join(folder, 'copy'), { isSynced: true }) : from
    writeFileSync(join(at, LIMIT_FILES.lists), JSON.stringify(lists))
    const startedAt = performance.now()
    const program = resolve(import.meta.dir, 'limit-server.ts')
    const child = Bun.spawn([process.execPath, program, at, isDurable ? 'full' : 'normal'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const { value } = await child.stdout.getReader().read()
    const { url } = JSON.parse(new TextDecoder().decode(value)) as { url: string }
    return {
      ...{ url, pid: child.pid, startMs: performance.now() - startedAt },
      headers: { 'content-type': 'application/json' },
      async [Symbol.asyncDispose]() {
        child.kill()
        await child.exited
      },
    }
  }

  function toListRequest(question: ListQuestion): SentRequest {
    const { sql, countSql, values } = toSelect('sqlite', question)
    const list = { sql, countSql: question.isCounted ? countSql : undefined }
    const key = JSON.stringify(list)
    let place = places.get(key)
    if (place === undefined) {
      place = lists.push(list) - 1
      places.set(key, place)
    }
    return { method: 'GET', path: `/lists/${place}?${encodeURIComponent(JSON.stringify(values))}` }
  }

  function toRequest(question: Question): SentRequest | undefined {
    switch (question.kind) {
      case 'get':
        return { method: 'GET', path: `/contacts/${contactId(question.contact)}` }
      case 'list':
        return toListRequest(question)
      case 'create':
        return { method: 'POST', path: '/contacts', body: JSON.stringify(makeRecord(question.n)) }
      case 'update': {
        const path = `/contacts/${contactId(question.contact)}`
        return { method: 'PATCH', path, body: JSON.stringify(question.change) }
      }
    }
  }

  const measureSize = () => measureRoom(join(folders.single, LIMIT_FILES.data))
  return { name: 'the limit', fill, start, toRequest, measureSize }
}

function withDatabase(folder: string, use: (db: Database) => void) {
  const db = new Database(join(folder, LIMIT_FILES.data))
  use(db)
  db.exec('pragma wal_checkpoint(truncate)')
  db.close()
}

/** The columns of each contact, in the order of the table. */
export function toColumns(json: string, n: number): (string | number)[] {
  const { name, email, stage, worth, company, active, born } = makeRecord(n)
  const value = JSON.stringify(company)
  const start = json.indexOf(value, json.indexOf('"company":'))
  const place = [start, start + value.length]
  return [contactId(n), name, email, stage, worth, company, active ? 1 : 0, born, workspaceOf(n), n, json, ...place]
}

export const toCompanyColumns = (n: number) => {
  const [id, name] = [companyId(n), `Company ${n}`]
  const common = { _id: Bun.randomUUIDv7(), user: Bun.randomUUIDv7(), workspace: null, metadata: { name }, name }
  const times = { created: '2025-01-01T00:00:00.000Z', updated: '2025-01-01T00:00:00.000Z' }
  return [id, JSON.stringify({ identifier: id, ...common, ...times })]
}

function insertRows(db: Database, json: string[]) {
  const insert = db.prepare(`insert into contacts values (${Array(13).fill('?')})`)
  const insertCompany = db.prepare('insert into companies values (?, ?)')
  db.transaction(() => {
    for (const n of companyNumbers) insertCompany.run(...toCompanyColumns(n))
    for (const [n, text] of json.entries()) insert.run(...toColumns(text, n))
  })()
  insert.finalize()
  insertCompany.finalize()
}

function createWordIndexes(db: Database) {
  db.exec(`create virtual table words using fts5 (name, email, notes, content='', tokenize='unicode61');
    create virtual table parts using fts5 (name, content='', tokenize='trigram');
    insert into words (rowid, name, email, notes) select rowid, name, email, json ->> 'notes' from contacts;
    insert into parts (rowid, name) select rowid, name from contacts`)
}
