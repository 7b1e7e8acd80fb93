import { eq } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { type Answer, forbidKeeping } from '../../core/etag'
import { Problem } from '../../core/problem'
import type { Ctx } from '../guard'
import { prove } from '../proof'
import { assertSignedIn } from '../sessions'
import type { Proof } from '../shapes'
import { refuseTokens } from '../tokens'
import { find, fullNameOf } from '../users'
import { tellUser } from '../users/events'
import { ALGORITHMS, bytesOf, challengeIn, described, registered, webauthn } from './ceremony'
import { giveChallenge, PATIENCE, takeChallenge } from './challenges'
import { shown } from './passkeys'
import { relyingPartyOf } from './relying-party'
import type { NewPasskey } from './shapes'
import { passkeys } from './tables'

const MOST = 20

/**
 * What `navigator.credentials.create` needs to make a passkey for the caller, who proves who they are.
 * @throws 403 UNKNOWN_ORIGIN and what `prove` throws, 409 TOO_MANY_PASSKEYS
 */
export async function start(ctx: Ctx, proof: Proof | null | undefined, answer: Answer) {
  refuseTokens(ctx)
  forbidKeeping(answer)
  const { id, origin } = await relyingPartyOf(ctx, answer.request)
  const user = await find(ctx, ctx.actor.user)
  const have = await ctx.db.select().from(passkeys).where(eq(passkeys.user, user._id))
  refuseMany(have.length)
  await prove(ctx, proof ?? {}, answer.request)
  const challenge = await ctx.write((tx) => giveChallenge(tx, 'registration', origin, user._id))
  return webauthn().generateRegistrationOptions({
    rpID: id,
    rpName: id,
    userID: bytesOf(user._id, 'utf8'),
    userName: user.username,
    userDisplayName: fullNameOf(user) || user.username,
    challenge: bytesOf(challenge),
    timeout: PATIENCE,
    attestationType: 'none',
    // One that the authenticator finds by itself, so that nobody has to type a name.
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: ALGORITHMS,
    excludeCredentials: have.filter(({ host }) => host === id).map(described),
  })
}

/** Keeps a passkey of the caller's. @throws 400 INVALID_CHALLENGE, INVALID_PASSKEY; 409 PASSKEY_EXISTS, TOO_MANY_PASSKEYS */
export async function register(ctx: Ctx, { name = 'Passkey', credential }: NewPasskey) {
  refuseTokens(ctx)
  const { user: _id } = ctx.actor
  const challenge = challengeIn(credential.response.clientDataJSON)
  const begun = await takeChallenge(ctx, 'registration', challenge, _id)
  if (!begun) throw new Problem(400, 'INVALID_CHALLENGE', 'This took too long, or was done already. Begin anew.')
  const made = await registered(credential, begun, challenge)
  if (!made)
    throw new Problem(400, 'INVALID_PASSKEY', 'This is no passkey for this page. Try again, or another device.')
  const row = {
    _id: Bun.randomUUIDv7(),
    user: _id,
    credential: made.credential.id,
    publicKey: Buffer.from(made.credential.publicKey).toString('base64url'),
    counter: made.credential.counter,
    host: new URL(begun.origin).hostname,
    name,
    transports: credential.response.transports ?? [],
    backedUp: made.credentialBackedUp,
    created: iso(now()),
  }
  const user = await find(ctx, _id)
  const kept = await ctx.write(async (tx) => {
    await assertSignedIn(tx, ctx.actor)
    const have = await tx.select({ _id: passkeys._id }).from(passkeys).where(eq(passkeys.user, _id))
    refuseMany(have.length)
    const kept = await tx.insert(passkeys).values(row).onConflictDoNothing().returning().get()
    if (kept) await tellUser(ctx, tx, 'user-updated', user, { changed: ['passkeys'] })
    return kept
  })
  if (!kept) throw new Problem(409, 'PASSKEY_EXISTS', 'This passkey is known already. Use another device.')
  return shown(kept)
}

function refuseMany(have: number) {
  if (have >= MOST) throw new Problem(409, 'TOO_MANY_PASSKEYS', `There are ${MOST} passkeys already. Remove one first.`)
}
