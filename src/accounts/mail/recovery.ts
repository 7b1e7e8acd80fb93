import { eq } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { success } from '../../core/shapes'
import { enqueue, type Job } from '../../jobs/queue'
import type { Work } from '../../jobs/work'
import { networkOf } from '../../tenancy/caller'
import { changing } from '../../tenancy/memory'
import type { Tenant } from '../../tenancy/tenants'
import { endSignIns } from '../handover'
import { lookAt, takeOnce } from '../one-time'
import { hashPassword } from '../passwords'
import { users } from '../tables'
import { countAttempt } from '../throttle'
import { checkedPassword, keyOfName } from '../users'
import { post } from './mails'
import { worthless } from './verification'

/**
 * Sends a mail to who has this address, if anybody. Nobody is looked for before the answer, which is thus the same
 * for every address, and takes the same time. @throws 429
 */
export async function forgot(tenant: Tenant, email: string, request: Request) {
  await countAttempt(tenant, { account: keyOfName(email), address: networkOf(request), of: 'forgotten password' })
  await tenant.write((tx) => enqueue(tenant, tx, { kind: 'forgotten-password', payload: { email } }))
  return success
}

export const forgottenPassword: Work = {
  async run(tenant: Tenant, { payload }: Job) {
    const emailKey = keyOfName((payload as { email: string }).email)
    const user = await tenant.db.select().from(users).where(eq(users.emailKey, emailKey)).get()
    // Whoever gave the address at sign-up may have given a stranger's.
    if (!user?.email || !user.emailVerified) return { state: 'done' }
    const mail = { to: user.email, template: 'passwordReset', user: user._id } as const
    return { state: 'done', effect: (tx) => post(tenant, tx, mail) }
  },
}

/**
 * Sets a password for who proves by a token that they read mail at the user's verified address. All sessions and API tokens
 * end, and so does a change of the address that is pending.
 * @throws 400 INVALID_TOKEN
 */
export async function reset(tenant: Tenant, token: string, password: string) {
  checkedPassword(password)
  // Hashing is costly: nobody has it done with a token that is worth nothing.
  if (!(await lookAt(tenant.db, 'passwordReset', token))) worthless()
  const hash = await hashPassword(tenant, password)
  await changing(tenant, 'actors', async (tx) => {
    const { user: _id, data } = (await takeOnce(tx, 'passwordReset', token)) ?? worthless()
    const user = await tx.select().from(users).where(eq(users._id, _id)).get()
    if (!user?.emailVerified || user.emailKey !== data.emailKey) return worthless()
    await endSignIns(tx, _id)
    const change = { password: hash, version: user.version + 1, updated: iso(now()) }
    await tx.update(users).set(change).where(eq(users._id, _id))
  })
  return success
}
