import { and, eq, gt, lt, sql } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { sha256 } from '../../core/crypto'
import { Problem } from '../../core/problem'
import { getSettings } from '../../platform/settings/tenant-settings'
import { Conflict } from '../../storage/errors'
import type { Tx } from '../../storage/port'
import { writeInvalidating } from '../../tenancy/cache'
import { clientNetwork } from '../../tenancy/client-connection'
import type { Tenant } from '../../tenancy/tenants'
import { authSettings } from '../auth-settings'
import { revokeAllCredentials } from '../credential-revocation'
import { throwInvalidToken } from '../mail/verification'
import { isCode, MAX_CODE_TRIES, wrongCode } from '../mail-codes'
import { completeFirstFactor, completeSignUp, type SignInUser, signupClosed } from '../signin'
import { countAttempt, recordSuccess } from '../signin-throttle'
import { countSignup } from '../signup-throttle'
import { type UserRow, users } from '../tables'
import { emitUserUpdated } from '../users/events'
import { registerUser } from '../users/users'
import { assertEmailSignInAllowed } from './request'
import type { EmailCode, EmailLink } from './shapes'
import { emailSignIns } from './tables'

const MAX_USERNAME_ATTEMPTS = 5

type Mailbox = { email: string; emailKey: string }

/**
 * Signs in by the code of a mail, on the device that requested it.
 * @throws 401 INVALID_CODE, SECOND_FACTOR_REQUIRED; 403 EMAIL_SIGNIN_CLOSED, SIGNUP_CLOSED; 429 RATE_LIMITED
 */
export async function signInByEmailCode(
  tenant: Tenant,
  { request: token, code, authType }: EmailCode,
  request: Request,
) {
  await assertEmailSignInAllowed(tenant)
  const signIn = sha256(token)
  const subjects = { account: signIn, address: clientNetwork(request), of: 'e-mail code' as const }
  await countAttempt(tenant, subjects)
  const mailbox = await tenant.write((tx) => consumeCode(tx, signIn, code))
  if (!mailbox) throw wrongCode(401)
  await recordSuccess(tenant, subjects)
  return completeFirstFactor(tenant, await findOrCreateUser(tenant, mailbox, request), authType, request)
}

/**
 * Signs in by the link of a mail, on any device.
 * @throws 400 INVALID_TOKEN; 401 SECOND_FACTOR_REQUIRED; 403 EMAIL_SIGNIN_CLOSED, SIGNUP_CLOSED; 429 RATE_LIMITED
 */
export async function signInByEmailLink(tenant: Tenant, { token, authType }: EmailLink, request: Request) {
  await assertEmailSignInAllowed(tenant)
  const mailbox = await tenant.write(async (tx) => {
    const isOpen = and(eq(emailSignIns.link, sha256(token)), gt(emailSignIns.expires, toIsoString(now())))
    const row = await tx.delete(emailSignIns).where(isOpen).returning().get()
    if (row) await endSignIns(tx, row)
    return row
  })
  if (!mailbox) return throwInvalidToken()
  return completeFirstFactor(tenant, await findOrCreateUser(tenant, mailbox, request), authType, request)
}

/** Counts a code, and ends the sign-in if it was right. Only one of several concurrent callers gets the mailbox. */
async function consumeCode(tx: Tx, signIn: string, code: string): Promise<Mailbox | undefined> {
  const row = await tx
    .update(emailSignIns)
    .set({ tries: sql`${emailSignIns.tries} + 1` })
    .where(
      and(
        eq(emailSignIns._id, signIn),
        lt(emailSignIns.tries, MAX_CODE_TRIES),
        gt(emailSignIns.expires, toIsoString(now())),
      ),
    )
    .returning()
    .get()
  if (!row || !isCode(row.code, code)) return
  await endSignIns(tx, row)
  return row
}

const endSignIns = (tx: Tx, { emailKey }: Mailbox) =>
  tx.delete(emailSignIns).where(eq(emailSignIns.emailKey, emailKey)).run()

/** Returns the user whose mailbox it is, or a new one. */
async function findOrCreateUser(tenant: Tenant, mailbox: Mailbox, request: Request): Promise<SignInUser> {
  for (let attempt = 1; ; attempt++) {
    const user = await findVerified(tenant, mailbox)
    if (user) return user
    if (!(await getSettings(tenant, authSettings)).allowSignup) throw signupClosed()
    if (attempt === 1) await countSignup(tenant, request)
    try {
      return await createUser(tenant, mailbox, attempt)
    } catch (error) {
      // Somebody else has the username, or a concurrent request created the user.
      const isTaken = error instanceof Conflict || (error instanceof Problem && error.status === 409)
      if (!isTaken || attempt === MAX_USERNAME_ATTEMPTS) throw error
    }
  }
}

/**
 * Returns the user with an address, which counts as verified from now on. If it was not, somebody else may have created
 * the account, so all its credentials are revoked.
 */
async function findVerified(tenant: Tenant, { emailKey }: Mailbox): Promise<SignInUser | undefined> {
  const hasAddress = eq(users.emailKey, emailKey)
  const found = await tenant.db.select().from(users).where(hasAddress).get()
  if (!found || found.emailVerified) return found
  return writeInvalidating(tenant, 'actors', async (tx) => {
    const user = await tx.select().from(users).where(hasAddress).get()
    if (!user || user.emailVerified) return user
    const passwordRemoved = await revokeAllCredentials(tenant, tx, user)
    const change = { emailVerified: true, version: user.version + 1, updated: toIsoString(now()) }
    const changed = await tx.update(users).set(change).where(eq(users._id, user._id)).returning().get()
    await emitUserUpdated(tenant, tx, user, changed)
    return { ...changed, passwordRemoved }
  })
}

function createUser(tenant: Tenant, { email }: Mailbox, attempt: number): Promise<UserRow> {
  const name = email.replace(/@.*/, '').slice(0, 100)
  const username = attempt === 1 ? name : `${name}-${crypto.randomUUID().slice(0, 8)}`
  const afterInsert = (tx: Tx, user: UserRow) => completeSignUp(tenant, tx, user)
  return registerUser(tenant, { username, email }, ['user'], afterInsert, { emailVerified: true })
}
