import { eq } from 'drizzle-orm'
import { notFound } from '../../core/problem'
import { success } from '../../core/shapes'
import { deleteSecrets } from '../../platform/vault/vault'
import type { Tx } from '../../storage/port'
import { writeInvalidating } from '../../tenancy/cache'
import type { Ctx } from '../context'
import { assertEndTokensWithPassword, authorizeCredentialChange, omitUnchanged } from '../credentials'
import { changeEmailByAdmin } from '../mail/email-changes'
import { runOwnerDeletedHandlers } from '../owner-deleted'
import { hashPassword } from '../passwords'
import { assertMayManage } from '../permissions'
import { type UserRow, users } from '../tables'
import { toWorkOwner } from '../work-owner'
import { emitUserEvent } from './events'
import type { NewUser, UserChange } from './shapes'
import { updateUser } from './user-update'
import {
  assertBirthDate,
  assertMetadataSize,
  assertNotLastAdmin,
  getUser,
  registerUser,
  requireValidPassword,
  toUser,
} from './users'

/**
 * Returns a user with the fields that only admins see.
 * @throws 404 USER_NOT_FOUND
 */
export const get = async (ctx: Ctx, id: string) => toUser(await getUser(ctx, id), true)

/**
 * Creates a user; default role: `user`.
 * @throws 400, 403 for an admin by a token with scopes, 409 USERNAME_EXISTS, EMAIL_EXISTS
 */
export async function create(ctx: Ctx, { roles, metadata = {}, internalMetadata = {}, ...input }: NewUser) {
  assertMayManage(ctx.actor, { roles })
  const { profileImage, ...fields } = emptyToNull(input)
  const privilegedFields = {
    profileImage: profileImage || null,
    metadata: assertMetadataSize(metadata),
    internalMetadata: assertMetadataSize(internalMetadata, '/internalMetadata'),
    // Admins are responsible for the addresses that they enter, so these count as verified.
    emailVerified: !!fields.email,
  }
  const afterInsert = (tx: Tx, user: UserRow) => emitUserEvent(ctx, tx, 'user-created', user)
  return toUser(await registerUser(ctx, fields, roles, afterInsert, privilegedFields), true)
}

/**
 * Changes the given fields of a user. A new password ends the user's sessions. To change their own credentials, admins
 * need a recent sign-in or a proof, as in their profile.
 * @throws 400, 403 PROOF_REQUIRED, INVALID_CREDENTIALS, 404 USER_NOT_FOUND
 * @throws 409 USERNAME_EXISTS, EMAIL_EXISTS, LAST_ADMIN
 */
export async function change(ctx: Ctx, id: string, input: UserChange, request: Request) {
  const { password, currentPassword, code, endTokens, metadata, internalMetadata, ...rest } = input
  assertEndTokensWithPassword(input)
  assertBirthDate(rest)
  const user = await getUser(ctx, id)
  assertMayManage(ctx.actor, user, input)
  // An admin who impersonates another admin still changes their own credentials here.
  const isOwn = id === ctx.actor.user || id === ctx.actor.impersonator
  const { email, ...fields } = omitUnchanged(emptyToNull(rest), user)
  const credentials = { username: fields.username, email, password }
  const passwordHash = isOwn
    ? await authorizeCredentialChange(ctx, user, credentials, { currentPassword, code }, request)
    : password === undefined
      ? undefined
      : await hashPassword(toWorkOwner(ctx), requireValidPassword(password))
  const update = { ...fields, email, metadata, internalMetadata, passwordHash, endTokens }
  const changed = await updateUser(ctx, id, update, {
    isOwn,
    changeEmail: changeEmailByAdmin,
    // The user may have become an admin meanwhile.
    assertMayUpdate: (before) => assertMayManage(ctx.actor, before),
  })
  return toUser(changed, true)
}

/**
 * Deletes a user with their sessions, tokens, memberships and secrets. What they created stays. A workspace that loses
 * its last admin is left to the admins of the tenant.
 * @throws 404 USER_NOT_FOUND, 409 LAST_ADMIN
 */
export async function remove(ctx: Ctx, id: string) {
  await writeInvalidating(ctx, 'actors', async (tx) => {
    assertMayManage(ctx.actor, (await tx.select().from(users).where(eq(users._id, id)).get()) ?? notFound('user'))
    await removeInTx(ctx, tx, id)
  })
  return success
}

/**
 * Deletes a user in a transaction. It must be called in a write that changes the topic `actors`.
 * @throws 404 USER_NOT_FOUND, 409 LAST_ADMIN
 */
export async function removeInTx(ctx: Ctx, tx: Tx, id: string) {
  await assertNotLastAdmin(tx, id)
  for (const purpose of ['user', 'totp']) await deleteSecrets(tx, purpose, id)
  const removed = (await tx.delete(users).where(eq(users._id, id)).returning().get()) ?? notFound('user')
  await runOwnerDeletedHandlers(ctx, tx, { type: 'user', id })
  await emitUserEvent(ctx, tx, 'user-removed', removed)
}

/** Treats an empty value as none, so that clients can send back what they read. */
const emptyToNull = <Fields extends { email?: string | null; profileImage?: string | null }>(fields: Fields) => ({
  ...fields,
  ...(fields.email === '' && { email: null }),
  ...(fields.profileImage === '' && { profileImage: null }),
})
