import { and, eq, lt } from 'drizzle-orm'
import { config } from '../../config'
import { now, toIsoString } from '../../core/clock'
import { notFound, Problem, tooManyRequests } from '../../core/problem'
import { RateLimiter } from '../../core/rate-limiter'
import type { Tx } from '../../storage/port'
import { clientNetwork } from '../../tenancy/client-connection'
import type { Tenant } from '../../tenancy/tenants'
import { getWorkspaceAccess } from '../memberships/workspace-access'
import { consumeOneTimeToken, findOneTimeToken } from '../one-time-tokens'
import { isPrivileged } from '../permissions'
import type { SignIn } from '../shapes'
import { startSession, throwChallengeExpired } from '../signin'
import { countAttempt, recordSuccess } from '../signin-throttle'
import { getUser } from '../users/users'
import { CHALLENGE_TTL_MS, consumeChallenge, issueChallenge } from './challenges'
import { resolveRelyingParty } from './relying-party'
import type { PasskeySignIn } from './shapes'
import { passkeys } from './tables'
import { loadWebAuthn, readChallenge, toBytes, toDescriptor, verifyAssertion } from './webauthn'

const startLimiter = new RateLimiter(60, 60_000) // per minute and network

/**
 * Returns the options of `navigator.credentials.get`: for any passkey of the page's host or, with the challenge of a
 * sign-in by password, for those of its user.
 * @throws 401 INVALID_CHALLENGE, 403 UNKNOWN_ORIGIN, 404 PASSKEY_NOT_FOUND when that user has none, 429 RATE_LIMITED
 */
export async function start(tenant: Tenant, challenge: string | undefined, request: Request) {
  const { id, origin } = await resolveRelyingParty(tenant, request)
  const wait =
    config.ATOLL_RATE_LIMITS === 'off' ? 0 : startLimiter.consume(`${tenant.tenant} ${clientNetwork(request)}`)
  if (wait) tooManyRequests(wait / 1000, 'Too many sign-ins were started.')
  const allowCredentials = challenge === undefined ? undefined : await findAllowedPasskeys(tenant, challenge, id)
  const issuedChallenge = await tenant.write((tx) => issueChallenge(tx, 'signin', origin))
  return loadWebAuthn().generateAuthenticationOptions({
    rpID: id,
    challenge: toBytes(issuedChallenge),
    timeout: CHALLENGE_TTL_MS,
    userVerification: 'required',
    allowCredentials,
  })
}

async function findAllowedPasskeys({ db }: Tenant, challenge: string, host: string) {
  const { user } = (await findOneTimeToken(db, 'secondFactor', challenge)) ?? throwChallengeExpired()
  const isUsable = and(eq(passkeys.user, user), eq(passkeys.host, host))
  const rows = await db.select().from(passkeys).where(isUsable)
  return rows.length ? rows.map(toDescriptor) : notFound('passkey')
}

/**
 * Signs a user in by a passkey, or completes a sign-in by password. A passkey counts as both factors: users have it on
 * a device, which verifies them.
 * @throws 401 INVALID_CHALLENGE, INVALID_PASSKEY; 404 WORKSPACE_NOT_FOUND when the user cannot access the workspace;
 * 429 RATE_LIMITED
 */
export async function signIn(tenant: Tenant, { credential, challenge, ...input }: PasskeySignIn, request: Request) {
  const passkey = await tenant.db.select().from(passkeys).where(eq(passkeys.credential, credential.id)).get()
  const address = clientNetwork(request)
  const subjects = { account: credential.id, address, telling: { user: passkey?.user }, of: 'passkey' } as const
  await countAttempt(tenant, subjects)
  const signedChallenge = readChallenge(credential.response.clientDataJSON)
  const pending = (await consumeChallenge(tenant, 'signin', signedChallenge)) ?? throwChallengeExpired()
  const assertion =
    passkey &&
    isOwnedBy(passkey.user, credential) &&
    (await verifyAssertion(credential, passkey, pending, signedChallenge))
  if (!assertion) throw invalidPasskey()
  const user = await getUser(tenant, passkey.user)
  if (input.workspace)
    await getWorkspaceAccess(tenant.db, { user: user._id, privileged: isPrivileged(user.roles) }, input.workspace)
  const { authType, workspace } = await tenant.write(async (tx) => {
    if (!(await recordPasskeyUse(tx, passkey._id, assertion.newCounter, assertion.credentialBackedUp)))
      throw invalidPasskey()
    return challenge === undefined ? input : consumeFirstFactor(tx, challenge, user._id)
  })
  await recordSuccess(tenant, subjects)
  return startSession(tenant, user, authType, request, workspace)
}

/** Returns whether a passkey belongs to the user. It may omit the user handle if it was requested by its id. */
const isOwnedBy = (user: string, { response: { userHandle } }: PasskeySignIn['credential']) =>
  !userHandle || Buffer.from(userHandle, 'base64url').toString() === user

/** Compares the counter once more in the transaction: of two copies that are used at once, one is rejected. */
const recordPasskeyUse = (tx: Tx, _id: string, counter: number, backedUp: boolean) =>
  tx
    .update(passkeys)
    .set({ counter, backedUp, used: toIsoString(now()) })
    .where(and(eq(passkeys._id, _id), counter ? lt(passkeys.counter, counter) : eq(passkeys.counter, 0)))
    .returning()
    .get()

/**
 * Returns the options of the sign-in by password that this passkey completes.
 * @throws 401 INVALID_CHALLENGE, INVALID_PASSKEY
 */
async function consumeFirstFactor(tx: Tx, challenge: string, user: string) {
  const pending = (await consumeOneTimeToken(tx, 'secondFactor', challenge)) ?? throwChallengeExpired()
  if (pending.user !== user) throw invalidPasskey()
  return pending.data as Pick<SignIn, 'authType' | 'workspace'>
}

const invalidPasskey = () =>
  new Problem(
    401,
    'INVALID_PASSKEY',
    'This passkey is unknown or could not be verified. Try again or use another sign-in method.',
  )
