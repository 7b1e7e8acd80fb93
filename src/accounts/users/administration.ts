import { eq } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { missing } from '../../core/problem'
import { success } from '../../core/shapes'
import type { Tx } from '../../storage/port'
import { changing } from '../../tenancy/memory'
import { hashOwnPassword, requireOwner, validateEndTokens, withoutUnchanged } from '../credentials'
import type { Ctx } from '../guard'
import { endWith } from '../leaving'
import { changeEmailByAdmin } from '../mail/email-changes'
import { takeAll } from '../one-time'
import { hashPassword } from '../passwords'
import { assertSignedIn, endApiTokens, endOthers } from '../sessions'
import { type UserRow, users } from '../tables'
import {
  checkedPassword,
  find,
  fullNameFrom,
  keysOf,
  refuseLastAdmin,
  refuseNoDate,
  refuseTaken,
  register,
  shown,
  small,
} from '../users'
import { discardSealed } from '../vault/vault'
import { tellUpdated, tellUser } from './events'
import type { NewUser, UserChange } from './shapes'

/** A user with all that admins see. @throws 404 */
export const get = async (ctx: Ctx, id: string) => shown(await find(ctx, id), true)

/** A new user, who has the role `user` unless told. @throws 400, 409 USERNAME_EXISTS, EMAIL_EXISTS */
export async function create(ctx: Ctx, { roles, metadata = {}, internalMetadata = {}, ...input }: NewUser) {
  const { profileImage, ...fields } = known(input)
  const given = {
    profileImage: profileImage || null,
    metadata: small(metadata),
    internalMetadata: small(internalMetadata, '/internalMetadata'),
    // Who administers the tenant answers for the addresses that they give.
    emailVerified: !!fields.email,
  }
  const also = (tx: Tx, user: UserRow) => tellUser(ctx, tx, 'user-created', user)
  return shown(await register(ctx, fields, roles, also, given), true)
}

/**
 * Changes what it mentions; a new password ends the user's sessions. Admins prove who they are for what they themselves sign in
 * with, as in their profile.
 * @throws 400, 403 PROOF_REQUIRED, INVALID_CREDENTIALS, 404, 409 also LAST_ADMIN
 */
export async function change(ctx: Ctx, id: string, input: UserChange, request: Request) {
  const { password, currentPassword, code, endTokens, metadata, internalMetadata, ...rest } = input
  validateEndTokens(input)
  refuseNoDate(rest)
  const user = await find(ctx, id)
  // Nor does acting as another admin make them somebody else.
  const own = id === ctx.actor.user || id === ctx.actor.impersonator
  const { email, ...fields } = withoutUnchanged(known(rest), user)
  const proof = { currentPassword, code }
  if (own && (email !== undefined || fields.username !== undefined)) await requireOwner(ctx, proof, request)
  const hash =
    password === undefined
      ? undefined
      : own
        ? await hashOwnPassword(ctx, user, password, proof, request)
        : await hashPassword(ctx, checkedPassword(password))
  const changed = await changing(ctx, 'actors', async (tx) => {
    await assertSignedIn(tx, ctx.actor)
    const before = (await tx.select().from(users).where(eq(users._id, id)).get()) ?? missing('user')
    await refuseTaken(tx, { _id: id, ...keysOf({ ...fields, email }) })
    if (fields.roles && !fields.roles.includes('admin')) await refuseLastAdmin(tx, id)
    if (hash) await endOthers(tx, id, own ? ctx.actor : {})
    if (hash && !own) await takeAll(tx, 'verification', id)
    if (hash && endTokens) await endApiTokens(tx, id)
    const change = {
      ...fields,
      ...fullNameFrom(fields, before),
      ...keysOf(fields),
      ...(hash && !own && { pendingEmail: null }),
      ...(email !== undefined && (await changeEmailByAdmin(ctx, tx, before, email))),
      ...(metadata && { metadata: small({ ...before.metadata, ...metadata }) }),
      ...(internalMetadata && {
        internalMetadata: small({ ...before.internalMetadata, ...internalMetadata }, '/internalMetadata'),
      }),
      ...(hash && { password: hash }),
      updated: iso(now()),
    }
    const after = await tx.update(users).set(change).where(eq(users._id, id)).returning().get()
    await tellUpdated(ctx, tx, before, after)
    return after
  })
  return shown(changed, true)
}

/**
 * Removes a user with their sessions, tokens, memberships and secrets. What they made stays; a workspace that loses its last
 * admin is left to those of the tenant. @throws 404, 409 LAST_ADMIN
 */
export async function remove(ctx: Ctx, id: string) {
  await changing(ctx, 'actors', (tx) => removeIn(ctx, tx, id))
  return success
}

/** The same as a part of a write that changes the topic `actors`. */
export async function removeIn(ctx: Ctx, tx: Tx, id: string) {
  await refuseLastAdmin(tx, id)
  for (const purpose of ['user', 'totp']) await discardSealed(tx, purpose, id)
  const gone = (await tx.delete(users).where(eq(users._id, id)).returning().get()) ?? missing('user')
  await endWith(ctx, tx, { type: 'user', id })
  await tellUser(ctx, tx, 'user-removed', gone)
}

/** What was read as empty means none. */
const known = <Fields extends { email?: string | null; profileImage?: string | null }>(fields: Fields) => ({
  ...fields,
  ...(fields.email === '' && { email: null }),
  ...(fields.profileImage === '' && { profileImage: null }),
})
