import { eq } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { sha256 } from '../../core/crypto'
import { badRequest, Problem } from '../../core/problem'
import { success } from '../../core/shapes'
import { toAddressKey } from '../../core/text-normalization'
import type { Tx } from '../../storage/port'
import { writeInvalidating } from '../../tenancy/cache'
import { clientNetwork } from '../../tenancy/client-connection'
import type { Tenant } from '../../tenancy/tenants'
import type { Ctx } from '../context'
import { wrongCode } from '../mail-codes'
import { type CodePurpose, consumeTokenByHash, findTokenByCode } from '../one-time-tokens'
import { countAttempt } from '../signin-throttle'
import { type UserRow, users } from '../tables'
import { emitUserUpdated } from '../users/events'
import { assertLoginAvailable, getUser, toLoginKeys } from '../users/users'
import { assertMailQuota, queueRepeatableMail } from './mails'
import type { MailProof } from './shapes'

type VerifiableUser = Pick<UserRow, '_id' | 'email' | 'emailVerified' | 'pendingEmail'>

/** Queues a mail that verifies the address of a user that is pending or not verified yet, if there is one. */
export async function sendVerification(tenant: Pick<Tenant, 'tenant'>, tx: Tx, user: VerifiableUser) {
  const to = user.pendingEmail ?? (user.emailVerified ? null : user.email)
  if (to) await queueRepeatableMail(tenant, tx, { to, template: 'verification', user: user._id })
}

/**
 * Queues another verification mail for the caller, unless their address is verified.
 * @throws 403 QUOTA_EXCEEDED, 409 NO_EMAIL, 429 RATE_LIMITED
 */
export async function resendVerification(ctx: Ctx, request: Request) {
  const user = await getUser(ctx, ctx.actor.user)
  if (!user.email && !user.pendingEmail)
    throw new Problem(409, 'NO_EMAIL', 'Add an e-mail address to your profile first.')
  if (user.emailVerified && !user.pendingEmail) return success
  await countAttempt(ctx, { account: user._id, address: clientNetwork(request), of: 'verification' })
  await assertMailQuota(ctx)
  await ctx.write((tx) => sendVerification(ctx, tx, user))
  return success
}

/**
 * Marks the address to which a mail was sent as verified. A pending address replaces the old one.
 * @throws 400 INVALID_CODE, INVALID_INPUT, INVALID_TOKEN; 409 EMAIL_EXISTS
 */
export async function verifyEmail(tenant: Tenant, proof: MailProof) {
  const hash = await resolveMailProof(tenant, 'verification', proof)
  await writeInvalidating(tenant, 'actors', async (tx) => {
    const { user: _id, data } = (await consumeTokenByHash(tx, 'verification', hash)) ?? throwInvalid(proof)
    const user = (await tx.select().from(users).where(eq(users._id, _id)).get()) ?? throwInvalid(proof)
    const email = user.pendingEmail
    const isPending = email !== null && email === data.email
    if (!isPending && user.emailKey !== data.emailKey) return throwInvalid(proof)
    if (isPending) await assertLoginAvailable(tx, { _id, ...toLoginKeys({ email }) })
    const change = {
      ...(isPending && { email, ...toLoginKeys({ email }), pendingEmail: null }),
      ...{ emailVerified: true, updated: toIsoString(now()) },
    }
    const changed = await tx.update(users).set(change).where(eq(users._id, _id)).returning().get()
    if (isPending) await emitUserUpdated(tenant, tx, user, changed)
  })
  return success
}

/**
 * Returns the hash of the token that proves that somebody read a mail: the one of its link, or the one that its code
 * stands for. A code counts as a try, whatever happens next.
 * @throws 400 INVALID_CODE, INVALID_INPUT
 */
export async function resolveMailProof(tenant: Tenant, purpose: CodePurpose, { token, email, code }: MailProof) {
  if (token !== undefined) return sha256(token)
  if (email === undefined || code === undefined)
    return badRequest({ path: 'token', message: 'Send the token of the link, or the email and the code of the mail.' })
  return (await findTokenByCode(tenant, purpose, toAddressKey(email), code)) ?? throwInvalid({ code })
}

/** @throws 400 INVALID_TOKEN or INVALID_CODE for what is unknown, used or expired */
export const throwInvalid = ({ token }: MailProof): never => {
  if (token !== undefined) return throwInvalidToken()
  throw wrongCode(400)
}

/** @throws 400 INVALID_TOKEN for a token that is unknown, used or expired */
export const throwInvalidToken = (): never => {
  throw new Problem(400, 'INVALID_TOKEN', 'This link is invalid or has expired. Request a new one.')
}
