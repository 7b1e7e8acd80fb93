import { and, eq, gt, sql } from 'drizzle-orm'
import { type Awaitable, andThen } from '../core/awaitable'
import { BoundedMap } from '../core/bounded-map'
import { now, toIsoString } from '../core/clock'
import { sha256 } from '../core/crypto'
import { Problem } from '../core/problem'
import { getSettings } from '../platform/settings/tenant-settings'
import { prepareFirst } from '../storage/prepared-statements'
import { cached, invalidate } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { verifyAccessToken } from './access-tokens'
import { members, workspaces } from './memberships/tables'
import { workspaceSettings } from './memberships/workspace-settings'
import { isPrivileged } from './permissions'
import { apiTokens, sessionKeys, sessions, users } from './tables'

/** The author of a request, as identified by its credential. */
export type Actor = {
  /** The user's id. */
  user: string
  username?: string
  roles: string[]
  privileged: boolean
  workspace: ActiveWorkspace | null
  via: 'api-key' | 'bearer' | 'cookie'
  /** The session behind a bearer token or cookie. */
  session?: string
  /** The API token. `bound` tells whether it is limited to one workspace. */
  token?: { _id: string; bound: boolean }
  /** The scopes of an API token; an empty list sets no limit. */
  scopes: string[]
  /** The id of the admin who impersonates this user. */
  impersonator?: string
}

/** The workspace in which an actor acts, with the actor's roles there. */
export type ActiveWorkspace = { _id: string; name: string; roles: string[]; labels: string[] }

/** The cached actor of a credential, and when the credential expires (ms). */
type CachedActor = { actor: Actor; version: number; expires: number; replaced: boolean }

export const API_TOKEN_PATTERN = /^atl_[0-9a-f]{64}$/
const LAST_USED_INTERVAL_MS = 60_000 // ms between two updates of the last use of an API token
const MAX_LAST_USES = 10_000 // tokens per tenant

const userColumns = { user: users._id, username: users.username, roles: users.roles, version: users.version }
/** The active workspace of a credential, and the roles of its user there. */
const workspaceColumns = {
  workspace: workspaces._id,
  name: workspaces.name,
  labels: workspaces.labels,
  membership: members.roles,
}
const memberJoin = and(eq(members.workspace, workspaces._id), eq(members.user, users._id))
const tokenWorkspace = sql`coalesce(${apiTokens.workspace}, ${apiTokens.activeWorkspace})`

const selectBySession = prepareFirst((db) =>
  db
    .select({ ...userColumns, ...workspaceColumns })
    .from(sessions)
    .innerJoin(users, eq(users._id, sessions.user))
    .leftJoin(workspaces, eq(workspaces._id, sessions.workspace))
    .leftJoin(members, memberJoin)
    .where(eq(sessions._id, sql.placeholder('session'))),
)
const selectByCookie = prepareFirst((db) =>
  db
    .select({
      ...userColumns,
      session: sessions._id,
      expires: sessionKeys.expires,
      spent: sessionKeys.spent,
      ...workspaceColumns,
    })
    .from(sessionKeys)
    .innerJoin(sessions, and(eq(sessions._id, sessionKeys.session), eq(sessions.kind, 'cookie')))
    .innerJoin(users, eq(users._id, sessions.user))
    .leftJoin(workspaces, eq(workspaces._id, sessions.workspace))
    .leftJoin(members, memberJoin)
    .where(and(eq(sessionKeys.hash, sql.placeholder('hash')), gt(sessionKeys.expires, sql.placeholder('now')))),
)
const selectByToken = prepareFirst((db) =>
  db
    .select({
      _id: apiTokens._id,
      ...userColumns,
      scopes: apiTokens.scopes,
      expires: apiTokens.expires,
      bound: apiTokens.workspace,
      ...workspaceColumns,
    })
    .from(apiTokens)
    .innerJoin(users, eq(users._id, apiTokens.user))
    .leftJoin(workspaces, eq(workspaces._id, tokenWorkspace))
    .leftJoin(members, memberJoin)
    .where(eq(apiTokens.hash, sql.placeholder('hash'))),
)

/** Returns the token of `Authorization: Bearer …`, or an empty string. */
export const readBearerToken = ({ headers }: Request) =>
  headers.get('authorization')?.match(/^bearer\s+(\S+)\s*$/i)?.[1] ?? ''

/** Whether a text has the form of an API token. */
export const isApiToken = (text: string) => API_TOKEN_PATTERN.test(text)

/**
 * Returns the actor of an access token, without a promise when both are cached.
 * @throws 401 UNAUTHENTICATED when the token is invalid or expired, or its session has ended, or its user was deleted
 * or has changed
 */
export const authenticateBearerToken = (tenant: Tenant, token: string): Awaitable<Actor> =>
  andThen(verifyAccessToken(tenant, token), (claims) => {
    if (!claims) throw explainInvalidBearer(tenant, token)
    const found = cached<CachedActor | undefined>(tenant, 'actors', claims.sid, async () => {
      const row = await selectBySession(tenant.db, { session: claims.sid })
      return row && toCachedActor(tenant, row, { via: 'bearer', session: claims.sid })
    })
    return andThen(found, (entry) => {
      if (entry && entry.version === claims.ver && entry.actor.user === claims.sub) return entry.actor
      throw invalidCredential()
    })
  })

const invalidCredential = (message = 'The token is invalid or has expired. Refresh it, or sign in again.') =>
  new Problem(401, 'UNAUTHENTICATED', message)

/**
 * Returns a 401 that names what the caller sent instead of an access token of this tenant, if the text alone shows it.
 */
function explainInvalidBearer({ tenant }: Tenant, token: string) {
  if (!token)
    return invalidCredential('Only Bearer tokens (Authorization: Bearer …) and API tokens (x-api-key: …) are accepted.')
  if (API_TOKEN_PATTERN.test(token)) return invalidCredential('This is an API token. Send it in the header x-api-key.')
  const claimedTenant = readTenantClaim(token)
  if (claimedTenant !== undefined && claimedTenant !== tenant)
    return invalidCredential(
      'This token belongs to another tenant. Send the header tenant, or send the request to a host of that tenant.',
    )
  return invalidCredential()
}

/** Returns the tenant that a JWT names, without verifying its signature. */
function readTenantClaim(token: string): unknown {
  try {
    return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).tid
  } catch {
    return undefined
  }
}

/** The actor of a session cookie, when the cookie expires (ms), and whether a newer cookie has replaced it. */
export type CookieSession = Pick<CachedActor, 'actor' | 'expires' | 'replaced'>

/** Returns the session of a session cookie, or undefined when it has ended; without a promise when it is cached. */
export function authenticateCookie(tenant: Tenant, token: string): Awaitable<CookieSession | undefined> {
  const found = cached<CachedActor | undefined>(tenant, 'actors', `cookie ${token}`, async () => {
    const row = await selectByCookie(tenant.db, { hash: sha256(token), now: now() })
    if (!row) return
    const { session, expires, spent } = row
    return {
      ...(await toCachedActor(tenant, row, { via: 'cookie', session })),
      expires: Date.parse(expires),
      replaced: !!spent,
    }
  })
  return andThen(found, (entry) => (entry && entry.expires > now() ? entry : undefined))
}

const lastUsesByDb = new WeakMap<Tenant['db'], BoundedMap<string, number>>()

/**
 * Returns the actor of an API token, synchronously when it is cached.
 * @throws 401 UNAUTHENTICATED when the token is invalid or expired
 */
export function authenticateApiToken(tenant: Tenant, token: string): Awaitable<Actor> {
  if (!API_TOKEN_PATTERN.test(token)) throw explainInvalidApiToken(token)
  const found = cached<CachedActor | undefined>(tenant, 'actors', token, async () => {
    const row = await selectByToken(tenant.db, { hash: sha256(token) })
    if (!row) return
    const { _id, bound } = row
    const expires = row.expires ? Date.parse(row.expires) : Number.POSITIVE_INFINITY
    const loaded = await toCachedActor(tenant, row, { via: 'api-key', token: { _id, bound: !!bound } }, row.scopes)
    // A bound token is worthless once its user has no access to the workspace.
    if (bound && !loaded.actor.workspace) return
    return { ...loaded, expires }
  })
  return andThen(found, (entry) => {
    const time = now()
    if (!entry || entry.expires <= time) throw invalidCredential()
    recordLastUse(tenant, token, time)
    return entry.actor
  })
}

const explainInvalidApiToken = (token: string) =>
  /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)
    ? invalidCredential('This is an access token. Send it as a Bearer token: Authorization: Bearer …')
    : invalidCredential()

/** Returns the roles of a user, or undefined when the user does not exist. */
export async function findRoles({ db }: Tenant, user: string): Promise<string[] | undefined> {
  const row = await db.select({ roles: users.roles }).from(users).where(eq(users._id, user)).get()
  return row?.roles
}

/** Empties the cache of actors. It must be called after a change of users, roles or sessions. */
export const invalidateActors = (tenant: Tenant) => invalidate(tenant, 'actors')

/** Returns the active workspace of a session, or null. */
export async function findActiveWorkspace(tenant: Tenant, session: string): Promise<ActiveWorkspace | null> {
  const row = await selectBySession(tenant.db, { session })
  return row ? toActiveWorkspace(tenant, row) : null
}

type ActorRow = { user: string; username: string; roles: string[]; version: number } & {
  [column in keyof typeof workspaceColumns]: (typeof workspaceColumns)[column]['_']['data'] | null
}

/** Returns null when the user is no longer a member, unless they are an admin, who can access every workspace. */
async function toActiveWorkspace(tenant: Tenant, { workspace, name, labels, membership, roles }: ActorRow) {
  if (workspace === null || !(membership || isPrivileged(roles))) return null
  const { isActive } = await getSettings(tenant, workspaceSettings)
  return isActive ? { _id: workspace, name: name!, roles: membership ?? [], labels: labels! } : null
}

type ActorCredential = Pick<Actor, 'via' | 'session' | 'token'>

async function toCachedActor(tenant: Tenant, row: ActorRow, by: ActorCredential, scopes: string[] = []) {
  const { user, username, roles, version } = row
  const workspace = await toActiveWorkspace(tenant, row)
  const actor: Actor = { user, username, roles, privileged: isPrivileged(roles), workspace, scopes, ...by }
  // An access token carries its own expiry.
  return { actor, version, expires: Number.POSITIVE_INFINITY, replaced: false }
}

/** Records the last use of an API token in the background, at most once a minute. */
function recordLastUse(tenant: Tenant, token: string, time: number) {
  const lastUses = lastUsesByDb.get(tenant.db) ?? new BoundedMap<string, number>(MAX_LAST_USES)
  if (time - (lastUses.get(token) ?? 0) < LAST_USED_INTERVAL_MS) return
  lastUsesByDb.set(tenant.db, lastUses.set(token, time))
  const [used, hash] = [toIsoString(time), sha256(token)]
  // Losing it only loses a date.
  tenant.write((tx) => tx.update(apiTokens).set({ used }).where(eq(apiTokens.hash, hash)).run()).catch(() => {})
}
