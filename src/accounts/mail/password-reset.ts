import { eq } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { success } from '../../core/shapes'
import { normalizeForLookup } from '../../core/text-normalization'
import { enqueue, type Job } from '../../jobs/queue'
import type { JobHandler } from '../../jobs/worker'
import { writeInvalidating } from '../../tenancy/cache'
import { clientNetwork } from '../../tenancy/client-connection'
import type { Tenant } from '../../tenancy/tenants'
import { revokeSignIns } from '../credential-revocation'
import { consumeOneTimeToken, findOneTimeToken } from '../one-time-tokens'
import { hashPassword } from '../passwords'
import { countAttempt } from '../signin-throttle'
import { users } from '../tables'
import { requireValidPassword } from '../users/users'
import { queueMail } from './mails'
import { throwInvalidToken } from './verification'

/**
 * Sends a mail to who has this address, if anybody. Nobody is looked for before the answer, which is thus the same
 * for every address, and takes the same time. @throws 429
 */
export async function requestPasswordReset(tenant: Tenant, email: string, request: Request) {
  await countAttempt(tenant, {
    account: normalizeForLookup(email),
    address: clientNetwork(request),
    of: 'forgotten password',
  })
  await tenant.write((tx) => enqueue(tenant, tx, { kind: 'forgotten-password', payload: { email } }))
  return success
}

export const passwordResetJob: JobHandler = {
  async run(tenant: Tenant, { payload }: Job) {
    const emailKey = normalizeForLookup((payload as { email: string }).email)
    const user = await tenant.db.select().from(users).where(eq(users.emailKey, emailKey)).get()
    // Whoever gave the address at sign-up may have given a stranger's.
    if (!user?.email || !user.emailVerified) return { state: 'done' }
    const mail = { to: user.email, template: 'passwordReset', user: user._id } as const
    return { state: 'done', effect: (tx) => queueMail(tenant, tx, mail) }
  },
}

/**
 * Sets a password for who proves by a token that they read mail at the user's verified address. All sessions and API tokens
 * end, and so does a change of the address that is pending.
 * @throws 400 INVALID_TOKEN
 */
export async function resetPassword(tenant: Tenant, token: string, password: string) {
  requireValidPassword(password)
  // Hashing is costly: nobody has it done with a token that is worth nothing.
  if (!(await findOneTimeToken(tenant.db, 'passwordReset', token))) throwInvalidToken()
  const hash = await hashPassword(tenant, password)
  await writeInvalidating(tenant, 'actors', async (tx) => {
    const { user: _id, data } = (await consumeOneTimeToken(tx, 'passwordReset', token)) ?? throwInvalidToken()
    const user = await tx.select().from(users).where(eq(users._id, _id)).get()
    if (!user?.emailVerified || user.emailKey !== data.emailKey) return throwInvalidToken()
    await revokeSignIns(tx, _id)
    const change = { password: hash, version: user.version + 1, updated: toIsoString(now()) }
    await tx.update(users).set(change).where(eq(users._id, _id))
  })
  return success
}
