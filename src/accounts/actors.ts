import { and, eq, gt, sql } from 'drizzle-orm'
import { iso, now } from '../core/clock'
import { Problem } from '../core/problem'
import { hashed } from '../core/secret'
import { prepared } from '../storage/store'
import { forget, recall } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import { verifyAccess } from './access'
import { isPrivileged } from './permissions'
import { settingsOf } from './settings'
import { apiTokens, sessionKeys, sessions, users } from './tables'
import { members, workspaces } from './workspaces/tables'

/** The author of a request, as known from its credential. */
export type Actor = {
  /** The user's id. */
  user: string
  roles: string[]
  privileged: boolean
  workspace: ActiveWorkspace | null
  via: 'api-key' | 'bearer' | 'cookie'
  /** The session behind a bearer token or cookie. */
  session?: string
  /** The API token, and whether it is good for its workspace only. */
  token?: { _id: string; bound: boolean }
  /** What an API token is limited to; empty: nothing. */
  scopes: string[]
  /** The admin who acts as this user. */
  impersonator?: string
}

/** The workspace that somebody acts in, with the roles that they have there. */
export type ActiveWorkspace = { _id: string; name: string; roles: string[]; labels: string[] }

/** What is remembered of a credential: its actor, and until when. */
type Known = { actor: Actor; version: number; expires: number; replaced: boolean }

export const API_TOKEN = /^atl_[0-9a-f]{64}$/
const TOUCH = 60_000 // ms between two notes of an API token's last use

/** The workspace that a credential is in, if it is there, and what its user is in it. */
const active = {
  workspace: workspaces._id,
  name: workspaces.name,
  labels: workspaces.labels,
  membership: members.roles,
}
const membership = and(eq(members.workspace, workspaces._id), eq(members.user, users._id))
const tokenWorkspace = sql`coalesce(${apiTokens.workspace}, ${apiTokens.activeWorkspace})`

const statements = prepared((db) => ({
  bySession: db
    .select({ user: users._id, roles: users.roles, version: users.version, ...active })
    .from(sessions)
    .innerJoin(users, eq(users._id, sessions.user))
    .leftJoin(workspaces, eq(workspaces._id, sessions.workspace))
    .leftJoin(members, membership)
    .where(eq(sessions._id, sql.placeholder('session')))
    .prepare(),
  byCookie: db
    .select({
      user: users._id,
      roles: users.roles,
      version: users.version,
      session: sessions._id,
      expires: sessionKeys.expires,
      spent: sessionKeys.spent,
      ...active,
    })
    .from(sessionKeys)
    .innerJoin(sessions, and(eq(sessions._id, sessionKeys.session), eq(sessions.kind, 'cookie')))
    .innerJoin(users, eq(users._id, sessions.user))
    .leftJoin(workspaces, eq(workspaces._id, sessions.workspace))
    .leftJoin(members, membership)
    .where(and(eq(sessionKeys.hash, sql.placeholder('hash')), gt(sessionKeys.expires, sql.placeholder('now'))))
    .prepare(),
  byToken: db
    .select({
      _id: apiTokens._id,
      user: users._id,
      roles: users.roles,
      version: users.version,
      scopes: apiTokens.scopes,
      expires: apiTokens.expires,
      bound: apiTokens.workspace,
      ...active,
    })
    .from(apiTokens)
    .innerJoin(users, eq(users._id, apiTokens.user))
    .leftJoin(workspaces, eq(workspaces._id, tokenWorkspace))
    .leftJoin(members, membership)
    .where(eq(apiTokens.hash, sql.placeholder('hash')))
    .prepare(),
}))

/** The token of `Authorization: Bearer …`, else nothing. */
export const bearerOf = ({ headers }: Request) => headers.get('authorization')?.match(/^bearer\s+(\S+)\s*$/i)?.[1] ?? ''

/** The actor behind an access token. @throws 401 when it, its session or its user is not good, or not any more. */
export async function byBearer(tenant: Tenant, token: string): Promise<Actor> {
  const claims = await verifyAccess(tenant, token)
  if (!claims) throw refusedBearer(tenant, token)
  const known = await recall<Known | undefined>(tenant, 'actors', claims.sid, async () => {
    const row = await statements(tenant.db).bySession.get({ session: claims.sid })
    return row && knownAs(tenant, row, { via: 'bearer', session: claims.sid })
  })
  if (known && known.version === claims.ver && known.actor.user === claims.sub) return known.actor
  throw refused()
}

const refused = (message = 'The token is invalid or has expired. Refresh it, or sign in again.') =>
  new Problem(401, 'UNAUTHENTICATED', message)

/** Says of a credential that is no access token of this tenant what else it is, as far as it shows that by itself. */
function refusedBearer({ tenant }: Tenant, token: string) {
  if (!token) return refused('Only Bearer tokens (Authorization: Bearer …) and API tokens (x-api-key: …) are accepted.')
  if (API_TOKEN.test(token)) return refused('This is an API token. Send it in the header x-api-key.')
  const named = tenantIn(token)
  if (named !== undefined && named !== tenant)
    return refused('This token belongs to another tenant. Send the header tenant, or ask at a host of that tenant.')
  return refused()
}

/** The tenant that a JWT names, whoever made it. */
function tenantIn(token: string): unknown {
  try {
    return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).tid
  } catch {
    return undefined
  }
}

/** The actor behind a session cookie, and when the cookie ends (ms). */
export async function byCookie(tenant: Tenant, token: string): Promise<Known | undefined> {
  const hash = hashed(token)
  const known = await recall<Known | undefined>(tenant, 'actors', hash, async () => {
    const row = await statements(tenant.db).byCookie.get({ hash, now: now() })
    if (!row) return
    const { session, expires, spent } = row
    return {
      ...(await knownAs(tenant, row, { via: 'cookie', session })),
      expires: Date.parse(expires),
      replaced: !!spent,
    }
  })
  if (known && known.expires > now()) return known
}

const touched = new WeakMap<Tenant['db'], Map<string, number>>()

/** The actor behind an API token, at once when it is known. @throws 401 */
export function byApiToken(tenant: Tenant, token: string): Actor | Promise<Actor> {
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token))
    throw refused('This is an access token. Send it as a Bearer token: Authorization: Bearer …')
  if (!API_TOKEN.test(token)) throw refused()
  const known = recall<Known | undefined>(tenant, 'actors', token, async () => {
    const row = await statements(tenant.db).byToken.get({ hash: hashed(token) })
    if (!row) return
    const { _id, bound } = row
    const expires = row.expires ? Date.parse(row.expires) : Number.POSITIVE_INFINITY
    const found = await knownAs(tenant, row, { via: 'api-key', token: { _id, bound: !!bound } }, row.scopes)
    // A token for one workspace is good for nothing without it.
    if (bound && !found.actor.workspace) return
    return { ...found, expires }
  })
  const good = (known: Known | undefined) => {
    if (!known || known.expires <= now()) throw refused()
    noteUse(tenant, token)
    return known.actor
  }
  return known instanceof Promise ? known.then(good) : good(known)
}

/** A user's roles, by id. */
export async function rolesOf({ db }: Tenant, user: string): Promise<string[] | undefined> {
  const row = await db.select({ roles: users.roles }).from(users).where(eq(users._id, user)).get()
  return row?.roles
}

/** After a change of users, roles or sessions: nobody is who they were before. */
export const forgetActors = (tenant: Tenant) => forget(tenant, 'actors')

/** The active workspace of a session. */
export async function workspaceOf(tenant: Tenant, session: string): Promise<ActiveWorkspace | null> {
  const row = await statements(tenant.db).bySession.get({ session })
  return row ? activeOf(tenant, row) : null
}

type Row = { user: string; roles: string[]; version: number } & {
  [column in keyof typeof active]: (typeof active)[column]['_']['data'] | null
}

/** Who is no member any more is in it no more, unless they reach every workspace. */
async function activeOf(tenant: Tenant, { workspace, name, labels, membership, roles }: Row) {
  if (workspace === null || !(membership || isPrivileged(roles))) return null
  const { isActive } = await settingsOf(tenant, 'workspace-configuration')
  return isActive ? { _id: workspace, name: name!, roles: membership ?? [], labels: labels! } : null
}

type By = Pick<Actor, 'via' | 'session' | 'token'>

async function knownAs(tenant: Tenant, row: Row, by: By, scopes: string[] = []) {
  const { user, roles, version } = row
  const workspace = await activeOf(tenant, row)
  const actor: Actor = { user, roles, privileged: isPrivileged(roles), workspace, scopes, ...by }
  // An access token says itself until when it is good.
  return { actor, version, expires: Number.POSITIVE_INFINITY, replaced: false }
}

/** Nobody waits for it, and a failure costs nothing but a date. */
function noteUse(tenant: Tenant, token: string) {
  const notes = touched.get(tenant.db) ?? new Map<string, number>()
  touched.set(tenant.db, notes)
  const time = now()
  if (time - (notes.get(token) ?? 0) < TOUCH) return
  notes.set(token, time)
  const [used, hash] = [iso(time), hashed(token)]
  tenant.write((tx) => tx.update(apiTokens).set({ used }).where(eq(apiTokens.hash, hash)).run()).catch(() => {})
}
