import { eq } from 'drizzle-orm'
import { notFound, Problem } from '../../core/problem'
import { success } from '../../core/shapes'
import { deleteSecrets, withVault } from '../../platform/vault/vault'
import type { Tx } from '../../storage/port'
import type { Ctx } from '../context'
import { assertNotApiToken } from '../permissions'
import { requireRecentAuth } from '../reauthentication'
import { assertSignedIn } from '../sessions'
import type { Proof } from '../shapes'
import { recordSuccess } from '../signin-throttle'
import { users } from '../tables'
import { emitMethodsChanged } from '../users/events'
import { getUser } from '../users/users'
import {
  countCodeAttempt,
  invalidCode,
  isTotpEnabled,
  prepareCodeUse,
  prepareConfirmation,
  toTotpSecretRef,
} from './code-verification'
import { newSecret, toOtpauthUri } from './codes'
import { newRecoveryCodes } from './recovery-codes'
import { recoveryCodes, totp } from './tables'

/** Returns whether the caller has a second factor, and how many recovery codes they have left. */
export async function get({ db, actor }: Ctx) {
  const [enabled, isUnused] = [await isTotpEnabled({ db }, actor.user), eq(recoveryCodes.user, actor.user)]
  return { enabled, recoveryCodes: await db.$count(recoveryCodes, isUnused) }
}

/**
 * Returns a new secret for the authenticator app of the caller. It has no effect until `confirm`.
 * @throws 403 FORBIDDEN for an API token, 409 TOTP_EXISTS, and the errors of `requireRecentAuth`
 */
export async function start(ctx: Ctx, proof: Proof | null | undefined, request: Request) {
  assertNotApiToken(ctx)
  const { _id, username } = await getUser(ctx, ctx.actor.user)
  if (await isTotpEnabled(ctx, _id)) throw totpExists()
  await requireRecentAuth(ctx, proof ?? {}, request)
  const secret = newSecret()
  await withVault(ctx, async (tx, vault) => {
    await assertSignedIn(tx, ctx.actor)
    const before = await tx.select().from(totp).where(eq(totp.user, _id)).get()
    if (before?.confirmed) throw totpExists()
    // Each secret has its own number, so that the confirmation of a replaced one fails.
    const row = { user: _id, confirmed: false, step: (before?.step ?? 0) - 1 }
    await tx.insert(totp).values(row).onConflictDoUpdate({ target: totp.user, set: row })
    await vault.seal(tx, toTotpSecretRef(_id), secret)
  })
  return { secret, uri: toOtpauthUri(secret, ctx.tenant, username) }
}

/**
 * Enables the second factor of the caller by a code of it. Returns the recovery codes, which cannot be read again.
 * @throws 403 INVALID_CODE, 404 TOTP_NOT_FOUND, 409 TOTP_EXISTS
 */
export async function confirm(ctx: Ctx, code: string, request: Request) {
  assertNotApiToken(ctx)
  const { user } = ctx.actor
  const subjects = await countCodeAttempt(ctx, user, request)
  const consumeConfirmation = await prepareConfirmation(ctx, user, code)
  const { codes, rows } = newRecoveryCodes(user)
  await ctx.write(async (tx) => {
    await assertSignedIn(tx, ctx.actor)
    const row = (await tx.select().from(totp).where(eq(totp.user, user)).get()) ?? notFound('totp')
    if (row.confirmed) throw totpExists()
    if (!(await consumeConfirmation(tx))) throw invalidCode(403)
    await tx.insert(recoveryCodes).values(rows)
    await emitMethodsChanged(ctx, tx, user, 'totp')
  })
  await recordSuccess(ctx, subjects)
  return { recoveryCodes: codes }
}

/**
 * Removes the second factor of the caller, by a code of it or a recovery code.
 * @throws 403 INVALID_CODE, 404 TOTP_NOT_FOUND
 */
export async function remove(ctx: Ctx, code: string, request: Request) {
  assertNotApiToken(ctx)
  const { user } = ctx.actor
  if (!(await isTotpEnabled(ctx, user))) notFound('totp')
  const subjects = await countCodeAttempt(ctx, user, request)
  const consumeCode = await prepareCodeUse(ctx, user, code)
  await ctx.write(async (tx) => {
    if (!(await consumeCode(tx))) throw invalidCode(403)
    await deleteTotp(ctx, tx, user)
  })
  await recordSuccess(ctx, subjects)
  return success
}

/**
 * Removes the second factor of another user, who has lost it and their recovery codes.
 * @throws 403 FORBIDDEN for the caller's own, 404 USER_NOT_FOUND
 */
export async function removeForUser(ctx: Ctx, user: string) {
  if (user === ctx.actor.user || user === ctx.actor.impersonator) throw codeRequired()
  await ctx.write(async (tx) => {
    if (!(await tx.select({ _id: users._id }).from(users).where(eq(users._id, user)).get())) notFound('user')
    await deleteTotp(ctx, tx, user)
  })
  return success
}

/** Deletes a user's second factor, also an unconfirmed one, which had no effect yet. */
async function deleteTotp(ctx: Ctx, tx: Tx, user: string) {
  const deleted = await tx.delete(totp).where(eq(totp.user, user)).returning().get()
  if (deleted?.confirmed) await emitMethodsChanged(ctx, tx, user, 'totp')
  await tx.delete(recoveryCodes).where(eq(recoveryCodes.user, user))
  await deleteSecrets(tx, toTotpSecretRef(user).purpose, user)
}

const codeRequired = () =>
  new Problem(
    403,
    'FORBIDDEN',
    'Remove your own second factor with DELETE /api/me/totp and one of its codes or a recovery code, or ask another admin.',
  )

const totpExists = () =>
  new Problem(409, 'TOTP_EXISTS', 'A second factor is already set up. Remove it first with one of its codes.')
