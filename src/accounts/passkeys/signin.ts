import { and, eq, lt } from 'drizzle-orm'
import { config } from '../../config'
import { iso, now } from '../../core/clock'
import { type Answer, forbidKeeping } from '../../core/etag'
import { Limiter } from '../../core/limiter'
import { missing, Problem, tooMany } from '../../core/problem'
import type { Tx } from '../../storage/port'
import { networkOf } from '../../tenancy/caller'
import type { Tenant } from '../../tenancy/tenants'
import { lookAt, takeOnce } from '../one-time'
import { isPrivileged } from '../permissions'
import type { SignIn } from '../shapes'
import { started, tooLate } from '../signin'
import { countAttempt, noteSuccess } from '../throttle'
import { find } from '../users'
import { reach } from '../workspaces/reach'
import { bytesOf, challengeIn, described, proven, webauthn } from './ceremony'
import { giveChallenge, PATIENCE, takeChallenge } from './challenges'
import { relyingPartyOf } from './relying-party'
import type { PasskeySignIn } from './shapes'
import { passkeys } from './tables'

const starts = new Limiter(60, 60_000) // in a minute, of one network

/**
 * What `navigator.credentials.get` needs: for any passkey of the page's host, or after a password, with the challenge of
 * that sign-in, for those of its user. @throws 401 INVALID_CHALLENGE, 403 UNKNOWN_ORIGIN, 404 when that user has none, 429
 */
export async function start(tenant: Tenant, challenge: string | undefined, answer: Answer) {
  forbidKeeping(answer)
  const { id, origin } = await relyingPartyOf(tenant, answer.request)
  const wait = config.ATOLL_RATE_LIMITS === 'off' ? 0 : starts.take(`${tenant.tenant} ${networkOf(answer.request)}`)
  if (wait) tooMany(wait / 1000, 'Too many sign-ins were begun.')
  const allowCredentials = challenge === undefined ? undefined : await passkeysBehind(tenant, challenge, id)
  const given = await tenant.write((tx) => giveChallenge(tx, 'signin', origin))
  return webauthn().generateAuthenticationOptions({
    rpID: id,
    challenge: bytesOf(given),
    timeout: PATIENCE,
    userVerification: 'required',
    allowCredentials,
  })
}

async function passkeysBehind({ db }: Tenant, challenge: string, host: string) {
  const { user } = (await lookAt(db, 'secondFactor', challenge)) ?? tooLate()
  const theirs = and(eq(passkeys.user, user), eq(passkeys.host, host))
  const found = await db.select().from(passkeys).where(theirs)
  return found.length ? found.map(described) : missing('passkey')
}

/**
 * Begins a session for who has a passkey, or goes on with a sign-in by password. It is both factors: something that they
 * have, and by which it knows them. @throws 401 INVALID_CHALLENGE, INVALID_PASSKEY; 404 for a workspace out of reach; 429
 */
export async function signIn(tenant: Tenant, { credential, challenge, ...input }: PasskeySignIn, answer: Answer) {
  const { request } = answer
  const passkey = await tenant.db.select().from(passkeys).where(eq(passkeys.credential, credential.id)).get()
  const address = networkOf(request)
  const subjects = { account: credential.id, address, telling: { user: passkey?.user }, of: 'passkey' } as const
  await countAttempt(tenant, subjects)
  const signed = challengeIn(credential.response.clientDataJSON)
  const begun = (await takeChallenge(tenant, 'signin', signed)) ?? tooLate()
  const shown = passkey && isOf(passkey.user, credential) && (await proven(credential, passkey, begun, signed))
  if (!shown) throw refused()
  const user = await find(tenant, passkey.user)
  if (input.workspace) await reach(tenant.db, { user: user._id, privileged: isPrivileged(user.roles) }, input.workspace)
  const { authType, workspace } = await tenant.write(async (tx) => {
    if (!(await noteUse(tx, passkey._id, shown.newCounter, shown.credentialBackedUp))) throw refused()
    return challenge === undefined ? input : firstFactor(tx, challenge, user._id)
  })
  await noteSuccess(tenant, subjects)
  return started(tenant, user, authType, answer, workspace)
}

/** A passkey says whose it is, unless it was asked for by its name. */
const isOf = (user: string, { response: { userHandle } }: PasskeySignIn['credential']) =>
  !userHandle || Buffer.from(userHandle, 'base64url').toString() === user

/** The counter is compared here once more: of two copies that come at once, one gets in. */
const noteUse = (tx: Tx, _id: string, counter: number, backedUp: boolean) =>
  tx
    .update(passkeys)
    .set({ counter, backedUp, used: iso(now()) })
    .where(and(eq(passkeys._id, _id), counter ? lt(passkeys.counter, counter) : eq(passkeys.counter, 0)))
    .returning()
    .get()

/** What was asked for by the password to which this is the second factor. */
async function firstFactor(tx: Tx, challenge: string, user: string) {
  const begun = (await takeOnce(tx, 'secondFactor', challenge)) ?? tooLate()
  if (begun.user !== user) throw refused()
  return begun.data as Pick<SignIn, 'authType' | 'workspace'>
}

const refused = () =>
  new Problem(
    401,
    'INVALID_PASSKEY',
    'This passkey is not known here, or did not answer as it should. Try again, or sign in another way.',
  )
