import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { apiCaller, createTenantByCli, type RunOptions, runAtoll, signIn, startAtoll } from '../../fakes/cli'
import {
  COMPANIES,
  companyId,
  contactId,
  emailOf,
  MEMBER_EMAIL,
  makeRecord,
  USER_PASSWORD,
  USERS,
  WORKSPACES,
  workspaceOf,
} from '../contacts'
import { importRows, sendJson } from '../http-calls'
import { measureSequence, type SentRequest } from '../load'
import type { ListQuestion, Question } from '../questions'
import type { UsualList } from '../table-rows'
import { copyFolder, measureRoom, type RowNeeds, type Side } from './side'

const TENANT = 'bench'
const LIST = '/api/blueprints/contacts/entities'
const MEMBER_ROLE = 'member'
const [FAST_MS, FAST_PASSES, MAX_USE_MS] = [100, 3, 90_000]

/** Folders and databases: after the import, after some use, and the copy with which a row begins. */
type Place = 'imported' | 'used' | 'copy'

const OPERATIONS = ['create', 'read', 'update', 'delete']
const permissions = [
  ...OPERATIONS.map((operation) => ({ operation, scope: 'tenant', roleBased: ['user'] })),
  { operation: 'read', scope: 'workspace', workspaceRoleBased: ['*'] },
]
const blueprints = [
  { key: 'companies', name: 'Companies', fields: [{ key: 'name', type: 'string' }] },
  {
    key: 'contacts',
    name: 'Contacts',
    fields: [
      { key: 'name', type: 'string', required: true },
      { key: 'email', type: 'email' },
      { key: 'stage', type: 'string' },
      { key: 'worth', type: 'number' },
      { key: 'company', type: 'relation', target: 'companies' },
      { key: 'active', type: 'boolean' },
      { key: 'born', type: 'date' },
      { key: 'notes', type: 'text' },
    ],
  },
]

export type AtollOptions = {
  name: string
  folder: string
  rows: number
  program: string[]
  /** Databases for the data on a PostgreSQL server. */
  database?: {
    create(name: Place): Promise<void>
    copy(from: Place, to: Place): Promise<void>
    urlOf(name: Place): string
  }
}

export type AtollSide = Side & {
  /** Asks lists until they are fast and no index is being built, as an installation in use does, which is what rows begin with from then on. */
  useLists(lists: UsualList[]): Promise<void>
  /** Whether every index that a list would be read by is built. */
  isIndexed(url: string, question: ListQuestion): Promise<boolean>
  /** Answers each contact as it would be answered by its id, with the headers of such an answer. */
  readAll(): Promise<{ json: string[]; headers: Record<string, string> }>
}

export function createAtollSide({ name, folder, rows, program, database }: AtollOptions): AtollSide {
  let isUsed = false
  const headers: Record<'user' | 'member' | 'admin', Record<string, string>> = { user: {}, member: {}, admin: {} }
  const options = (place: Place, durability: 'full' | 'normal'): RunOptions => ({
    at: join(folder, place),
    program,
    env: {
      ATOLL_DURABILITY: durability,
      ATOLL_IMPORT_LIMIT: '1000000000',
      ATOLL_ACCESS_TOKEN_TTL: '86400',
      ...(database && { ATOLL_DATABASE_URL: database.urlOf(place) }),
    },
  })

  async function fill() {
    mkdirSync(join(folder, 'imported'), { recursive: true })
    await database?.create('imported')
    const run = options('imported', 'normal')
    if (database) await runAtoll('postgres init', run)
    await createTenantByCli(run, TENANT)
    await using server = await startAtoll(run)
    const admin = await signIn(server.url, TENANT)
    for (const one of blueprints) await sendJson(server.url, admin, 'POST', '/api/blueprints', { ...one, permissions })
    const companies = Array.from({ length: COMPANIES }, (_, n) => ({ identifier: companyId(n), name: `Company ${n}` }))
    await importRows(server.url, admin, 'companies', companies)
    for (let n = 0; n < USERS; n++)
      await sendJson(server.url, { tenant: TENANT }, 'POST', '/api/signup', {
        ...{ username: emailOf(n), email: emailOf(n), password: USER_PASSWORD, authType: 'oauth' },
      })
    const member = await sendJson(server.url, admin, 'POST', '/api/users', {
      ...{ username: MEMBER_EMAIL, email: MEMBER_EMAIL, password: USER_PASSWORD, roles: [MEMBER_ROLE] },
    })
    const owners = await Promise.all(
      Array.from({ length: WORKSPACES }, async (_, n) => {
        const owner = await signIn(server.url, TENANT, emailOf(n), USER_PASSWORD)
        const { _id } = await sendJson(server.url, owner, 'POST', '/api/workspaces', { name: `Workspace ${n}` })
        await sendJson(server.url, owner, 'POST', `/api/workspaces/${_id}/activate`, {})
        return { owner, workspace: _id as string }
      }),
    )
    const startedAt = performance.now()
    for (const [workspace, { owner }] of owners.entries()) {
      const numbers = Array.from({ length: rows }, (_, n) => n).filter((n) => workspaceOf(n) === workspace)
      const records = numbers.map((n) => ({ identifier: contactId(n), ...makeRecord(n) }))
      await importRows(server.url, owner, 'contacts', records)
    }
    const perSecond = rows / ((performance.now() - startedAt) / 1_000)
    const [{ owner, workspace }] = owners as [(typeof owners)[0]]
    const membership = { userId: member._id, roles: ['member'] }
    await sendJson(server.url, owner, 'POST', `/api/workspaces/${workspace}/members`, membership)
    headers.admin = admin
    headers.user = await signIn(server.url, TENANT, emailOf(WORKSPACES), USER_PASSWORD)
    headers.member = await signIn(server.url, TENANT, MEMBER_EMAIL, USER_PASSWORD)
    await sendJson(server.url, headers.member, 'POST', `/api/workspaces/${workspace}/activate`, {})
    await server.end('SIGTERM')
    return perSecond
  }

  async function copy(from: Place, to: Place, isSynced = false) {
    copyFolder(join(folder, from), join(folder, to), { isSynced: isSynced && !database })
    await database?.copy(from, to)
  }

  async function start({ caller, writes, isDurable, isJustImported }: RowNeeds) {
    // Indexes that are built on demand change the data of readers, too.
    await copy(isUsed && !isJustImported ? 'used' : 'imported', 'copy', writes)
    const startedAt = performance.now()
    const server = await startAtoll(options('copy', isDurable ? 'full' : 'normal'))
    await (await fetch(`${server.url}/health`)).arrayBuffer()
    return {
      url: server.url,
      pid: server.pid,
      headers: { ...headers[caller ?? 'user'], 'content-type': 'application/json' },
      startMs: performance.now() - startedAt,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  }

  async function readAll() {
    await using server = await start({})
    const json: string[] = []
    const call = apiCaller(server.url, server.headers)
    for (let skip = 0; skip < rows; skip += 1_000) {
      const ids = Array.from({ length: Math.min(1_000, rows - skip) }, (_, n) => contactId(skip + n))
      const { body } = await call('GET', `${LIST}?identifier[$gte]=${ids[0]}&$sort=identifier&$limit=${ids.length}`)
      json.push(...body.map((entity: object) => JSON.stringify(entity)))
    }
    const answer = await call('GET', `${LIST}/${contactId(0)}`)
    const computed = ['date', 'content-length', 'connection', 'transfer-encoding', 'keep-alive']
    return { json, headers: Object.fromEntries([...answer.headers].filter(([name]) => !computed.includes(name))) }
  }

  async function useLists(lists: UsualList[]) {
    await copy('imported', 'used')
    await using server = await startAtoll(options('used', 'normal'))
    const until = performance.now() + MAX_USE_MS
    for (let fastPasses = 0; fastPasses < FAST_PASSES && performance.now() < until; ) {
      let slowestMs = 0
      for (const { question, caller } of lists) {
        const { max } = await measureSequence(server.url, headers[caller], [toAtollRequest(question)])
        slowestMs = Math.max(slowestMs, max)
      }
      const path = '/api/blueprints/contacts/indexes'
      const indexes: { state: string }[] = await sendJson(server.url, headers.admin, 'GET', path)
      const isBuilt = indexes.every(({ state }) => state === 'ready')
      fastPasses = isBuilt && slowestMs < FAST_MS ? fastPasses + 1 : 0
    }
    await server.end('SIGTERM')
    isUsed = true
  }

  async function isIndexed(url: string, question: ListQuestion) {
    const { indexes = [] } = await sendJson(
      url,
      headers.admin,
      'GET',
      `${LIST}?${toAtollQuery(question)}&$explain=true`,
    )
    return indexes.every(({ state }: { state: string }) => state === 'ready')
  }

  const measureSize = () => measureRoom(join(folder, isUsed ? 'used' : 'imported', 'tenants', TENANT))
  return { name, fill, start, readAll, useLists, isIndexed, measureSize, toRequest: toAtollRequest }
}

/** Returns the query of a list as Atoll's parameters. */
export function toAtollQuery({ filters, sort, words, isCounted, isPopulated }: ListQuestion): string {
  const parameters = [
    ...filters.map(({ field, operator, value }) => {
      const name = operator ? `${field}[${operator}]` : field
      return `${name}=${encodeURIComponent(operator === '$like' ? `%${value}%` : `${value}`)}`
    }),
    ...(words ? [`$q=${words.map(encodeURIComponent).join('+')}`] : []),
    ...(sort ? [`$sort=${sort}`] : []),
    ...(isPopulated ? ['$populate=company'] : []),
    ...(isCounted ? ['$count=true'] : []),
    '$limit=20',
  ]
  return parameters.join('&')
}

export function toAtollRequest(question: Question): SentRequest {
  switch (question.kind) {
    case 'get':
      return { method: 'GET', path: `${LIST}/${contactId(question.contact)}` }
    case 'list':
      return { method: 'GET', path: `${LIST}?${toAtollQuery(question)}` }
    case 'create':
      return { method: 'POST', path: LIST, body: JSON.stringify(makeRecord(question.n)) }
    case 'update':
      return { method: 'PATCH', path: `${LIST}/${contactId(question.contact)}`, body: JSON.stringify(question.change) }
    case 'sign-in': {
      const body = { username: emailOf(question.user), password: USER_PASSWORD, authType: 'oauth' }
      return { method: 'POST', path: '/api/signin', body: JSON.stringify(body) }
    }
  }
}

/** The command that runs a checkout or a binary. */
export function toProgram(path: string): string[] {
  const main = resolve(path, 'src/main.ts')
  return existsSync(main) ? [process.execPath, main] : [resolve(path)]
}
