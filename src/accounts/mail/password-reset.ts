import { eq } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { success } from '../../core/shapes'
import { toAddressKey } from '../../core/text-normalization'
import { enqueue, type Job } from '../../jobs/queue'
import type { JobHandler } from '../../jobs/worker'
import { writeInvalidating } from '../../tenancy/cache'
import type { Tenant } from '../../tenancy/tenants'
import { revokeSignIns } from '../credential-revocation'
import { countMailRequest } from '../mail-request-throttle'
import { consumeTokenByHash, findTokenByHash } from '../one-time-tokens'
import { hashPassword } from '../passwords'
import { users } from '../tables'
import { emitUserUpdated } from '../users/events'
import { requireValidPassword } from '../users/users'
import { toWorkOwner } from '../work-owner'
import { assertMailQuota, queueRequestedMail } from './mails'
import type { PasswordReset } from './shapes'
import { resolveMailProof, throwInvalid } from './verification'

/**
 * Queues a password reset for the user with this address, if there is one. The user is only looked up after the
 * response, which is thus the same for every address and takes the same time.
 * @throws 403 QUOTA_EXCEEDED, 429 RATE_LIMITED
 */
export async function requestPasswordReset(tenant: Tenant, email: string, request: Request) {
  const isKnown = await countMailRequest(tenant, 'forgotten password', toAddressKey(email), request)
  await assertMailQuota(tenant)
  await tenant.write((tx) => enqueue(tenant, tx, { kind: 'forgotten-password', payload: { email, isKnown } }))
  return success
}

/** Queues the mail of a password reset if a user has verified the address that was entered. */
export const passwordResetJob: JobHandler = {
  async run(tenant: Tenant, { payload }: Job) {
    const { email, isKnown } = payload as { email: string; isKnown?: boolean }
    const emailKey = toAddressKey(email)
    const user = await tenant.db.select().from(users).where(eq(users.emailKey, emailKey)).get()
    // An unverified address may belong to a stranger.
    if (!user?.email || !user.emailVerified) return { state: 'done' }
    const mail = { to: user.email, template: 'passwordReset', user: user._id } as const
    return { state: 'done', effect: (tx) => queueRequestedMail(tenant, tx, mail, isKnown) }
  },
}

/**
 * Sets the password of a user whose token or code proves that they read mail at their verified address. All sessions and API
 * tokens end, and so does a pending change of the address.
 * @throws 400 INVALID_CODE, INVALID_INPUT, INVALID_TOKEN
 */
export async function resetPassword(tenant: Tenant, { password, ...proof }: PasswordReset, request: Request) {
  requireValidPassword(password)
  const token = await resolveMailProof(tenant, 'passwordReset', proof)
  // Hashing is expensive, so an invalid token is rejected before.
  if (!(await findTokenByHash(tenant.db, 'passwordReset', token))) throwInvalid(proof)
  const hash = await hashPassword(toWorkOwner(tenant, request), password)
  await writeInvalidating(tenant, 'actors', async (tx) => {
    const { user: _id, data } = (await consumeTokenByHash(tx, 'passwordReset', token)) ?? throwInvalid(proof)
    const user = await tx.select().from(users).where(eq(users._id, _id)).get()
    if (!user?.emailVerified || user.emailKey !== data.emailKey) return throwInvalid(proof)
    await revokeSignIns(tx, _id)
    const change = { password: hash, version: user.version + 1, updated: toIsoString(now()) }
    const changed = await tx.update(users).set(change).where(eq(users._id, _id)).returning().get()
    await emitUserUpdated(tenant, tx, user, changed)
  })
  return success
}
