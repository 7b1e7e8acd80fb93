import { eq } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { notFound } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { writeInvalidating } from '../../tenancy/cache'
import type { Ctx } from '../context'
import type { EmailChange } from '../mail/email-changes'
import { revokeOneTimeTokens } from '../one-time-tokens'
import { assertSignedIn, revokeApiTokens, revokeOtherSessions } from '../sessions'
import { type UserRow, users } from '../tables'
import { emitUserUpdated } from './events'
import { assertLoginAvailable, assertMetadataSize, assertNotLastAdmin, toFullNameChange, toLoginKeys } from './users'

type PlainField = 'username' | 'name' | 'firstName' | 'lastName' | 'fullName' | 'birthDate' | 'phone' | 'profileImage'

/** The new values of a user; an undefined field stays. Metadata is merged into that of the user. */
export type UserUpdate = Partial<Pick<UserRow, PlainField | 'roles' | 'metadata' | 'internalMetadata'>> & {
  email?: string | null
  passwordHash?: string
  /** Whether a new password also ends the user's API tokens. */
  endTokens?: boolean
}

type UpdateOptions = { isOwn: boolean; changeEmail: ChangeEmail; assertMayUpdate?: (before: UserRow) => void }
type ChangeEmail = (ctx: Ctx, tx: Tx, user: UserRow, email: string | null) => Promise<EmailChange>

/**
 * Changes a user and returns the new row. A new password ends all sessions of the user except, when users change their
 * own, the current one.
 * @throws 400, 401, 404 USER_NOT_FOUND, 409 USERNAME_EXISTS, EMAIL_EXISTS, LAST_ADMIN
 */
export const updateUser = (
  ctx: Ctx,
  id: string,
  { email, metadata, internalMetadata, passwordHash, endTokens, ...fields }: UserUpdate,
  { isOwn, changeEmail, assertMayUpdate }: UpdateOptions,
): Promise<UserRow> =>
  writeInvalidating(ctx, 'actors', async (tx) => {
    await assertSignedIn(tx, ctx.actor)
    const before = (await tx.select().from(users).where(eq(users._id, id)).get()) ?? notFound('user')
    assertMayUpdate?.(before)
    await assertLoginAvailable(tx, { _id: id, ...toLoginKeys({ ...fields, email }) })
    if (fields.roles && !fields.roles.includes('admin')) await assertNotLastAdmin(tx, id)
    if (passwordHash) await revokeOtherSessions(tx, id, isOwn ? ctx.actor : {})
    if (passwordHash && !isOwn) await revokeOneTimeTokens(tx, 'verification', id)
    if (passwordHash && endTokens) await revokeApiTokens(tx, id)
    const change = {
      ...fields,
      ...toFullNameChange(fields, before),
      ...toLoginKeys(fields),
      ...(passwordHash && !isOwn && { pendingEmail: null }),
      ...(email !== undefined && (await changeEmail(ctx, tx, before, email))),
      ...(metadata && { metadata: assertMetadataSize({ ...before.metadata, ...metadata }) }),
      ...(internalMetadata && {
        internalMetadata: assertMetadataSize({ ...before.internalMetadata, ...internalMetadata }, '/internalMetadata'),
      }),
      ...(passwordHash && { password: passwordHash }),
      updated: toIsoString(now()),
    }
    const after = await tx.update(users).set(change).where(eq(users._id, id)).returning().get()
    await emitUserUpdated(ctx, tx, before, after)
    return after
  })
