import { and, eq, gt, lt } from 'drizzle-orm'
import { HOUR_MS, now, toIsoString } from '../../core/clock'
import { generateToken, sha256 } from '../../core/crypto'
import { Problem } from '../../core/problem'
import { toAddressKey } from '../../core/text-normalization'
import { deleteInBatches } from '../../jobs/batch-delete'
import { enqueue, type Job } from '../../jobs/queue'
import type { Lease } from '../../jobs/with-lease'
import type { JobHandler } from '../../jobs/worker'
import { getSettings } from '../../platform/settings/tenant-settings'
import type { Tenant } from '../../tenancy/tenants'
import { authSettings } from '../auth-settings'
import { assertMailQuota, queueRequestedMail } from '../mail/mails'
import { generateCode } from '../mail-codes'
import { countMailRequest } from '../mail-request-throttle'
import { listProviders } from '../social/provider-config'
import { users } from '../tables'
import { emailSignIns } from './tables'

const CODE_TTL_MS = 15 * 60_000

/** Returns the ways besides passwords and passkeys in which users of a tenant sign in. */
export const getSignInMethods = async (tenant: Tenant) => ({
  email: (await getSettings(tenant, authSettings)).allowEmailSignIn,
  providers: await listProviders(tenant),
})

/** @throws 403 EMAIL_SIGNIN_CLOSED where the tenant does not allow sign-ins by mail */
export async function assertEmailSignInAllowed(tenant: Tenant) {
  if (!(await getSettings(tenant, authSettings)).allowEmailSignIn)
    throw new Problem(403, 'EMAIL_SIGNIN_CLOSED', 'Sign-in by e-mail is disabled. Use another way to sign in.')
}

/**
 * Queues a mail with a code and a link that sign in the user with this address or, where the tenant allows sign-ups,
 * create one. The user is only looked up after the response, which is thus the same for every address and takes the
 * same time. Returns the token that must accompany the code.
 * @throws 403 EMAIL_SIGNIN_CLOSED, QUOTA_EXCEEDED; 429 RATE_LIMITED
 */
export async function requestEmailSignIn(tenant: Tenant, email: string, request: Request) {
  await assertEmailSignInAllowed(tenant)
  const emailKey = toAddressKey(email)
  const isKnown = await countMailRequest(tenant, 'e-mail sign-in', emailKey, request)
  await assertMailQuota(tenant)
  const token = generateToken()
  const row = { _id: sha256(token), email, emailKey, tries: 0, expires: toIsoString(now() + HOUR_MS) }
  await tenant.write(async (tx) => {
    await tx.insert(emailSignIns).values(row)
    await enqueue(tenant, tx, { kind: 'email-signin', payload: { signIn: row._id, isKnown } })
  })
  return { request: token }
}

/** Queues the mail of a sign-in if there is a user with the address, or may be one. */
export const emailSignInJob: JobHandler = {
  async run(tenant: Tenant, { payload }: Job) {
    const { signIn, isKnown } = payload as { signIn: string; isKnown?: boolean }
    const row = await tenant.db.select().from(emailSignIns).where(eq(emailSignIns._id, signIn)).get()
    if (!row) return { state: 'done' }
    const user = await tenant.db.select().from(users).where(eq(users.emailKey, row.emailKey)).get()
    if (!user && !(await getSettings(tenant, authSettings)).allowSignup) return { state: 'done' }
    const mail = { to: user?.email ?? row.email, template: 'emailSignIn', data: { signIn } } as const
    return { state: 'done', effect: (tx) => queueRequestedMail(tenant, tx, mail, isKnown) }
  },
}

/**
 * Returns a new code and a new token for the mail of a sign-in, which are valid for 15 minutes. Returns undefined when
 * the sign-in has ended.
 */
export async function issueEmailSignIn(
  tenant: Tenant,
  signIn: string,
): Promise<{ code: string; token: string } | undefined> {
  const [code, token] = [generateCode(), generateToken()]
  const change = { code: sha256(code), link: sha256(token), expires: toIsoString(now() + CODE_TTL_MS) }
  const isOpen = and(eq(emailSignIns._id, signIn), gt(emailSignIns.expires, toIsoString(now())))
  const row = await tenant.write((tx) => tx.update(emailSignIns).set(change).where(isOpen).returning().get())
  return row && { code, token }
}

/** Removes sign-ins that were not completed. */
export const removeExpired = (tenant: Tenant & Lease) =>
  deleteInBatches(tenant, emailSignIns, emailSignIns._id, lt(emailSignIns.expires, toIsoString(now())))
