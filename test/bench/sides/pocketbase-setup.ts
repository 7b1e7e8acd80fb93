// The collections, users and first records of PocketBase.
import {
  COMPANIES,
  companyId,
  contactId,
  emailOf,
  MEMBER_EMAIL,
  makeRecord,
  SINGLE_INDEXES,
  STAGES,
  USER_PASSWORD,
  USERS,
  WORKSPACES,
  workspaceId,
  workspaceOf,
} from '../contacts'
import { sendJson } from '../http-calls'

const SUPERUSER = { identity: 'root@example.com', password: USER_PASSWORD }
const BATCH_ROWS = 500
const OPERATIONS = ['list', 'view', 'create', 'update', 'delete']
type Headers = Record<string, string>

export async function createSuperuser(program: string, folder: string) {
  const upsert = [program, 'superuser', 'upsert', SUPERUSER.identity, SUPERUSER.password, `--dir=${folder}`]
  if (await Bun.spawn(upsert, { stdio: ['ignore', 'ignore', 'inherit'] }).exited)
    throw new Error(`${program} created no superuser.`)
}

async function signInAsSuperuser(url: string): Promise<Headers> {
  const { token } = await sendJson(url, {}, 'POST', '/api/collections/_superusers/auth-with-password', SUPERUSER)
  return { authorization: token }
}

/** Signs a user in, and returns the headers of their requests. */
export async function signInAs(url: string, identity: string): Promise<Headers> {
  const body = { identity, password: USER_PASSWORD }
  const { token } = await sendJson(url, {}, 'POST', '/api/collections/users/auth-with-password', body)
  return { authorization: token }
}

/** Creates the collections with rules that admit all users. Returns the headers of the superuser. */
export async function createCollections(url: string): Promise<Headers> {
  const superuser = await signInAsSuperuser(url)
  const batch = { enabled: true, maxRequests: BATCH_ROWS, timeout: 60 }
  await sendJson(url, superuser, 'PATCH', '/api/settings', { logs: { maxDays: 0 }, batch })
  const users = await sendJson(url, superuser, 'GET', '/api/collections/users')
  // Tokens last for the whole run.
  await sendJson(url, superuser, 'PATCH', '/api/collections/users', { authToken: { duration: 864_000 } })
  const rules = Object.fromEntries(OPERATIONS.map((name) => [`${name}Rule`, "@request.auth.id != ''"]))
  const dates = [
    { name: 'created', type: 'autodate', onCreate: true },
    { name: 'updated', type: 'autodate', onCreate: true, onUpdate: true },
  ]
  const create = (name: string, fields: object[], indexes: string[] = []) =>
    sendJson(url, superuser, 'POST', '/api/collections', {
      ...{ name, type: 'base', ...rules, indexes },
      fields: [...fields, ...dates],
    })
  const companies = await create('companies', [{ name: 'name', type: 'text' }])
  const records = Array.from({ length: COMPANIES }, (_, n) => ({ id: companyId(n), name: `Company ${n}` }))
  for (let from = 0; from < COMPANIES; from += BATCH_ROWS)
    await sendBatch(url, superuser, 'companies', records.slice(from, from + BATCH_ROWS))
  const workspaces = await create('workspaces', [
    { name: 'name', type: 'text' },
    { name: 'members', type: 'relation', collectionId: users.id, maxSelect: 999 },
  ])
  await createUsers(url, superuser)
  await create(
    'contacts',
    [
      { name: 'name', type: 'text', required: true },
      { name: 'email', type: 'email' },
      { name: 'stage', type: 'select', values: STAGES, maxSelect: 1 },
      { name: 'worth', type: 'number' },
      { name: 'company', type: 'relation', collectionId: companies.id, maxSelect: 1 },
      { name: 'active', type: 'bool' },
      { name: 'born', type: 'date' },
      { name: 'notes', type: 'text' },
      { name: 'workspace', type: 'relation', collectionId: workspaces.id, maxSelect: 1 },
    ],
    SINGLE_INDEXES.map((field) => `CREATE INDEX idx_contacts_${field} ON contacts (${field})`),
  )
  return superuser
}

/** Creates the users, and the workspaces, whose first has a member. */
async function createUsers(url: string, superuser: Headers) {
  const passwords = { password: USER_PASSWORD, passwordConfirm: USER_PASSWORD }
  const createUser = (email: string) =>
    sendJson(url, superuser, 'POST', '/api/collections/users/records', { email, ...passwords })
  for (let n = 0; n < USERS; n++) await createUser(emailOf(n))
  const member = await createUser(MEMBER_EMAIL)
  const workspaces = Array.from({ length: WORKSPACES }, (_, n) => ({
    id: workspaceId(n),
    name: `Workspace ${n}`,
    members: n ? [] : [member.id],
  }))
  await sendBatch(url, superuser, 'workspaces', workspaces)
}

export async function changeListRule(url: string, listRule: string) {
  await sendJson(url, await signInAsSuperuser(url), 'PATCH', '/api/collections/contacts', { listRule })
}

/** Creates contacts by batch requests. Returns the rate per second. */
export async function createByBatch(url: string, superuser: Headers, rows: number): Promise<number> {
  const records = Array.from({ length: rows }, (_, n) => ({
    id: contactId(n),
    workspace: workspaceId(workspaceOf(n)),
    ...makeRecord(n),
  }))
  const startedAt = performance.now()
  for (let from = 0; from < rows; from += BATCH_ROWS)
    await sendBatch(url, superuser, 'contacts', records.slice(from, from + BATCH_ROWS))
  return rows / ((performance.now() - startedAt) / 1_000)
}

const sendBatch = (url: string, headers: Headers, collection: string, bodies: object[]) =>
  sendJson(url, headers, 'POST', '/api/batch', {
    requests: bodies.map((body) => ({ method: 'POST', url: `/api/collections/${collection}/records`, body })),
  })
