import { asc, eq } from 'drizzle-orm'
import { now, parseIsoDateTime, toIsoString } from '../core/clock'
import { generateToken, sha256 } from '../core/crypto'
import { badRequest, notFound, Problem } from '../core/problem'
import { success } from '../core/shapes'
import { Conflict } from '../storage/errors'
import { recordOperatorEvent } from '../tenancy/operator-events'
import { registry } from '../tenancy/registry'
import { operatorTokens } from '../tenancy/tables'
import type { NewOperatorToken, OperatorScope, OperatorToken } from './shapes'

const PREFIX = 'atlop_'
const USED_INTERVAL_MS = 60_000 // how exactly the last use is recorded

/** Returns all tokens, by name. It does not contain the tokens themselves, of which only hashes are stored. */
export const listTokens = async (): Promise<OperatorToken[]> =>
  (await registry.db.select().from(operatorTokens).orderBy(asc(operatorTokens.name))).map(toToken)

/** Creates a token. Only this answer contains it. @throws 409 TOKEN_EXISTS, 400 INVALID_INPUT for a past `expires` */
export async function createToken({ name, scopes, expires = null }: NewOperatorToken) {
  const expiry = expires === null ? undefined : parseIsoDateTime(expires)
  if (expires !== null && !(expiry && expiry > now()))
    badRequest({ path: '/expires', message: 'expires must be a time in the future, such as 2030-01-31T12:00:00Z.' })
  const token = `${PREFIX}${generateToken()}`
  const row = {
    _id: Bun.randomUUIDv7(),
    name,
    scopes,
    expires: expiry ? toIsoString(expiry) : null,
    used: null,
    created: toIsoString(now()),
  }
  await registry
    .write(async (tx) => {
      await tx.insert(operatorTokens).values({ ...row, hash: sha256(token) })
      await recordOperatorEvent(tx, 'operator-token-created', '', { name, scopes })
    })
    .catch((error) => {
      if (!(error instanceof Conflict)) throw error
      throw new Problem(409, 'TOKEN_EXISTS', `There is a token "${name}" already. Choose another name.`)
    })
  return { ...toToken(row), token }
}

/** Removes a token, which is worth nothing from now on. @throws 404 OPERATOR_TOKEN_NOT_FOUND */
export async function removeToken(id: string) {
  await registry.write(async (tx) => {
    const removed = await tx.delete(operatorTokens).where(eq(operatorTokens._id, id)).returning().get()
    if (!removed) return notFound('operator token')
    await recordOperatorEvent(tx, 'operator-token-removed', '', { name: removed.name })
  })
  return success
}

/** Returns the token that was sent, and records its use; undefined when there is none, or it has expired. */
export async function findToken(sent: string): Promise<OperatorToken | undefined> {
  if (!sent.startsWith(PREFIX)) return
  const row = await registry.db
    .select()
    .from(operatorTokens)
    .where(eq(operatorTokens.hash, sha256(sent)))
    .get()
  const time = now()
  if (!row || (row.expires && Date.parse(row.expires) <= time)) return
  if (!row.used || Date.parse(row.used) < time - USED_INTERVAL_MS) await recordLastUse(row._id, time)
  return toToken(row)
}

/** Records the last use. A full disk must not keep the operator out, so a failure is ignored. */
const recordLastUse = (id: string, time: number) =>
  registry
    .write((tx) =>
      tx
        .update(operatorTokens)
        .set({ used: toIsoString(time) })
        .where(eq(operatorTokens._id, id)),
    )
    .catch(() => {}) // losing it only loses a date

function toToken({ _id, name, scopes, created, expires, used }: Omit<typeof operatorTokens.$inferSelect, 'hash'>) {
  return { _id, name, scopes: scopes as OperatorScope[], created, expires, used }
}

/** The scopes for changes of a tenant, by the last part of their path; other changes need `tenants`. */
const SCOPE_BY_ACTION = new Map<string, OperatorScope>([
  ['hosts', 'hosts'],
  ['support', 'support'],
  ['move', 'moves'],
  ['backups', 'backups'],
  ['restore', 'backups'],
  ['clone', 'backups'],
])

/**
 * Returns the scope that a request needs; undefined when only the token of the settings may make it. A tenant or host may
 * be called like an action, so each part of `/operator/<resource>/<id>/<action>` counts only in its place.
 */
export function scopeOfRequest(method: string, path: string): OperatorScope | undefined {
  const [, , resource, , action = ''] = path.split('/')
  if (resource === 'tokens') return
  if (method === 'GET' || method === 'HEAD') return 'read'
  if (resource === 'certificates') return 'hosts'
  return SCOPE_BY_ACTION.get(action) ?? 'tenants'
}
