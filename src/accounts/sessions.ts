import { and, asc, eq, gt, inArray, isNull, lt, ne } from 'drizzle-orm'
import { now, toIsoString } from '../core/clock'
import { deriveToken, generateToken, sha256 } from '../core/crypto'
import { notFound, Problem } from '../core/problem'
import { success } from '../core/shapes'
import { deleteInBatches } from '../jobs/batch-delete'
import type { Lease } from '../jobs/with-lease'
import { BrokenReference } from '../storage/errors'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Tx } from '../storage/port'
import { bumpVersion, writeInvalidating } from '../tenancy/cache'
import { deriveKey } from '../tenancy/installation-keys'
import type { Tenant } from '../tenancy/tenants'
import type { Actor } from './actors'
import type { Ctx } from './context'
import { type ClientDevice, notifyNewDevice } from './mail/new-device'
import { revokeOneTimeTokens } from './one-time-tokens'
import { apiTokens, sessionKeys, sessions, users } from './tables'

/** How long a session lasts without being used, in ms. */
export const SESSION_TTL_MS = 30 * 86_400_000

/** Revoking all sessions of a user is one write, so their number is bounded. */
const MAX_SESSIONS_PER_USER = 1_000
const MAX_REMOVED_AT_ONCE = 100 // sessions, when a user has more than the maximum

/** How long (ms) a spent key still gets its successor, because tabs refresh in parallel. */
const REUSE_GRACE_MS = 30_000

/**
 * Creates a session. Returns its id and its key: the value of a cookie, or a refresh token. `passwordHash` is the hash
 * of the user's password at the time when they proved who they are. Of more than 1,000 sessions, those that were not
 * used for the longest time end.
 * @throws 401 INVALID_CREDENTIALS when the password was replaced meanwhile, UNAUTHENTICATED when the user was deleted
 */
export async function createSession(
  tenant: Tenant,
  user: string,
  kind: 'cookie' | 'oauth',
  device: ClientDevice,
  workspace: string | null = null,
  passwordHash?: string | null,
) {
  const [time, session] = [now(), Bun.randomUUIDv7()]
  const dates = { created: toIsoString(time), expires: toIsoString(time + SESSION_TTL_MS) }
  const key = await tenant
    .write(async (tx) => {
      if (passwordHash !== undefined) await assertSamePassword(tx, user, passwordHash)
      await removeLeastUsed(tx, user)
      await tx
        .insert(sessions)
        .values({ _id: session, user, kind, workspace, ...device, used: dates.created, ...dates })
      await notifyNewDevice(tenant, tx, user, device)
      return addKey(tx, session)
    })
    .catch(rethrowMissingUser)
  return { session, key }
}

/** Removes sessions of a user so that there is room for one more. */
async function removeLeastUsed(tx: Tx, user: string) {
  const mine = eq(sessions.user, user)
  const excess = (await tx.$count(sessions, mine)) + 1 - MAX_SESSIONS_PER_USER
  if (excess <= 0) return
  const leastUsed = tx
    .select({ _id: sessions._id })
    .from(sessions)
    .where(mine)
    .orderBy(asc(sessions.used), asc(sessions._id))
    .limit(Math.min(excess, MAX_REMOVED_AT_ONCE))
  await tx.delete(sessions).where(inArray(sessions._id, leastUsed))
  await bumpVersion(tx, 'actors')
}

/**
 * Hashing takes a while, and a user who replaces a password relies on all sessions having ended.
 * @throws 401 INVALID_CREDENTIALS when the hash of the user's password is another one now
 */
export async function assertSamePassword(tx: Tx, user: string, hash: string | null) {
  const row = await tx.select({ password: users.password }).from(users).where(eq(users._id, user)).get()
  if (row && row.password !== hash)
    throw new Problem(401, 'INVALID_CREDENTIALS', 'The password was changed just now. Sign in with the new one.')
}

/** The user may have been deleted after the password was verified. */
function rethrowMissingUser(error: unknown): never {
  if (error instanceof BrokenReference) throw new Problem(401, 'UNAUTHENTICATED', 'This user no longer exists.')
  throw error
}

/**
 * Exchanges a refresh token for its successor, which is the same for every caller and on every server. A token that was
 * spent more than 30 s ago, or whose successor was used, has been stolen, so the whole session ends.
 * @throws 401 UNAUTHENTICATED for a token that is unknown, expired or stolen
 */
export async function rotateRefreshToken(tenant: Tenant, token: string) {
  const [hash, time] = [sha256(token), now()]
  // Only hashes are stored, so the successor is derived from the token.
  const next = deriveToken(await deriveKey(tenant.tenant, 'refresh-token'), token)
  const result = await tenant.write(async (tx) => {
    const row = await tx
      .select({ key: sessionKeys, user: users })
      .from(sessionKeys)
      .innerJoin(sessions, and(eq(sessions._id, sessionKeys.session), eq(sessions.kind, 'oauth')))
      .innerJoin(users, eq(users._id, sessions.user))
      .where(and(eq(sessionKeys.hash, hash), gt(sessionKeys.expires, toIsoString(time))))
      .get()
    if (!row) return
    const { key, user } = row
    const session = key.session
    if (key.spent || !(await spendKey(tx, hash, time))) {
      const late = key.spent !== null && time - Date.parse(key.spent) > REUSE_GRACE_MS
      const unused = (await findKey(tx, next))?.spent === null
      return late || !unused ? { stolen: session } : { session, user, token: next }
    }
    await tx
      .delete(sessionKeys)
      .where(and(eq(sessionKeys.session, session), lt(sessionKeys.expires, toIsoString(time))))
    await extendSession(tx, session, time)
    return { session, user, token: await addKey(tx, session, next, hash) }
  })
  if (result?.stolen) await endSession(tenant, result.stolen)
  if (!result?.token)
    throw new Problem(401, 'UNAUTHENTICATED', 'The refresh token is invalid or has expired. Sign in again.')
  return result
}

/**
 * Returns a new cookie for the session of the old one. The old cookie stays valid for 30 s: parallel requests still
 * carry it, and get the same new one.
 * @throws 401 UNAUTHENTICATED when the session has ended meanwhile
 */
export async function rotateCookie(tenant: Tenant, session: string, cookie: string): Promise<string> {
  const [time, hash, key] = [now(), sha256(cookie), await deriveKey(tenant.tenant, 'refresh-token')]
  let next = deriveToken(key, cookie)
  return writeInvalidating(tenant, 'actors', async (tx) => {
    if (!(await spendKey(tx, hash, time, toIsoString(time + REUSE_GRACE_MS)))) {
      let successor = await findKey(tx, next)
      // Another tab may have renewed the new cookie meanwhile.
      for (; successor?.spent; successor = await findKey(tx, next)) next = deriveToken(key, next)
      return successor ? next : throwSessionEnded()
    }
    await tx
      .delete(sessionKeys)
      .where(and(eq(sessionKeys.session, session), lt(sessionKeys.expires, toIsoString(time))))
    await extendSession(tx, session, time)
    return addKey(tx, session, next, hash)
  })
}

const throwSessionEnded = (): never => {
  throw new Problem(401, 'UNAUTHENTICATED', 'This session has ended. Sign in again.')
}

/** Marks a session key as spent; returns undefined when it was spent before. */
const spendKey = (tx: Tx, hash: string, time: number, expires?: string) =>
  tx
    .update(sessionKeys)
    .set({ spent: toIsoString(time), ...(expires && { expires }) })
    .where(and(eq(sessionKeys.hash, hash), isNull(sessionKeys.spent)))
    .returning()
    .get()

const extendSession = (tx: Tx, session: string, time: number) =>
  tx
    .update(sessions)
    .set({ used: toIsoString(time), expires: toIsoString(time + SESSION_TTL_MS) })
    .where(eq(sessions._id, session))

const findKey = (tx: Tx, key: string) =>
  tx
    .select({ spent: sessionKeys.spent })
    .from(sessionKeys)
    .where(eq(sessionKeys.hash, sha256(key)))
    .get()

/** Returns a page of the caller's sessions, the most recently used first. */
export async function list({ db, actor }: Ctx, query: ListQuery) {
  const mine = and(eq(sessions.user, actor.user), gt(sessions.expires, toIsoString(now())))
  const page = parsePage(query, sortable, '-used')
  const rows = await applyPage(page, db.select().from(sessions).where(mine))
  const items = rows.map(({ user: _, ...session }) => ({ ...session, current: session._id === actor.session }))
  return toListPage(page, items, () => db.$count(sessions, mine))
}

const sortable = { _id: sessions._id, created: sessions.created, used: sessions.used, expires: sessions.expires }

/**
 * Ends one session of the caller.
 * @throws 404 SESSION_NOT_FOUND
 */
export async function remove(ctx: Ctx, id: string) {
  const deleted = await writeInvalidating(ctx, 'actors', (tx) =>
    tx
      .delete(sessions)
      .where(and(eq(sessions._id, id), eq(sessions.user, ctx.actor.user)))
      .returning()
      .get(),
  )
  if (!deleted) notFound('session')
  return success
}

/** Ends a session and all its keys. */
export const endSession = (tenant: Tenant, session: string) =>
  writeInvalidating(tenant, 'actors', (tx) => tx.delete(sessions).where(eq(sessions._id, session)).run())

/**
 * Ends all sessions of a user except one, and all sign-ins that have begun. It must be called in a write that changes
 * the topic `actors`.
 */
export async function revokeOtherSessions(tx: Tx, user: string, { session }: Pick<Actor, 'session'>) {
  await tx.delete(sessions).where(and(eq(sessions.user, user), ne(sessions._id, session ?? '')))
  for (const purpose of ['secondFactor', 'passwordReset', 'redirect', 'signinLink'] as const)
    await revokeOneTimeTokens(tx, purpose, user)
}

/**
 * Requires that the caller's session or API token still exists. It is for a write before which the caller had to prove
 * who they are: a password reset may have ended all their credentials meanwhile.
 * @throws 401 UNAUTHENTICATED
 */
export async function assertSignedIn(tx: Tx, { session, token }: Pick<Actor, 'session' | 'token'>) {
  const [table, id] = session ? [sessions, session] : [apiTokens, token?._id]
  if (id && !(await tx.select({ _id: table._id }).from(table).where(eq(table._id, id)).get())) throwSessionEnded()
}

/** Deletes all API tokens of a user. It must be called in a write that changes the topic `actors`. */
export const revokeApiTokens = (tx: Tx, user: string) => tx.delete(apiTokens).where(eq(apiTokens.user, user)).run()

/** Removes expired sessions and their keys, which are rejected already. */
export async function removeExpired(tenant: Tenant & Lease) {
  // The keys are removed first: an old session may have thousands, which one write would have to remove with it.
  await deleteInBatches(tenant, sessionKeys, sessionKeys.hash, lt(sessionKeys.expires, toIsoString(now())))
  await deleteInBatches(tenant, sessions, sessions._id, lt(sessions.expires, toIsoString(now())))
}

async function addKey(tx: Tx, session: string, key = generateToken(), parent?: string) {
  const time = now()
  const dates = { created: toIsoString(time), expires: toIsoString(time + SESSION_TTL_MS) }
  await tx.insert(sessionKeys).values({ hash: sha256(key), session, parent, ...dates })
  return key
}
