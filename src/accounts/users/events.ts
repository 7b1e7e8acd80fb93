import { eq } from 'drizzle-orm'
import { notFound } from '../../core/problem'
import { emit } from '../../jobs/outbox'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { PublicCtx } from '../context'
import { type UserRow, users } from '../tables'

type UserEventName = 'user-registered' | 'user-created' | 'user-updated' | 'user-removed'
type SignInMethods = 'passkeys' | 'identities' | 'totp'

/** Emits an event about a user, in the transaction of the change. Its author is the actor or, without one, the user. */
export const emitUserEvent = (
  ctx: Tenant | PublicCtx,
  tx: Tx,
  eventName: UserEventName,
  { _id, username, roles }: UserRow,
  more: Record<string, unknown> = {},
) => {
  const actor = 'actor' in ctx ? ctx.actor : undefined
  const metadata = { user: _id, username, roles, ...more }
  const by = { user: actor?.user ?? _id, workspace: actor?.workspace?._id }
  return emit(ctx, tx, { source: 'accounts', kind: 'user', eventName, metadata, ...by })
}

/**
 * Emits `user-updated` with the names of the changed fields, if there are any. The values are private, so they are left
 * out.
 */
export async function emitUserUpdated(ctx: PublicCtx, tx: Tx, before: UserRow, after: UserRow) {
  const changed = (Object.keys(after) as (keyof UserRow)[])
    .filter((name) => !DERIVED_FIELDS.includes(name))
    .filter((name) => !Bun.deepEquals(before[name] ?? '', after[name] ?? ''))
  if (changed.length) await emitUserEvent(ctx, tx, 'user-updated', after, { changed })
}

/**
 * Emits `user-updated` for a user whose sign-in methods have changed, in the transaction of the change.
 * @throws 404 USER_NOT_FOUND when the user was deleted meanwhile
 */
export async function emitMethodsChanged(ctx: Tenant | PublicCtx, tx: Tx, id: string, changed: SignInMethods) {
  const user = (await tx.select().from(users).where(eq(users._id, id)).get()) ?? notFound('user')
  await emitUserEvent(ctx, tx, 'user-updated', user, { changed: [changed] })
}

/** Fields that only change together with others. */
const DERIVED_FIELDS = ['usernameKey', 'emailKey', 'version', 'updated']
