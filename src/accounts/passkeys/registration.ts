import { eq } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { Problem } from '../../core/problem'
import type { Ctx } from '../context'
import { assertNotApiToken } from '../permissions'
import { requireRecentAuth } from '../reauthentication'
import { assertSignedIn } from '../sessions'
import type { Proof } from '../shapes'
import { emitMethodsChanged } from '../users/events'
import { fullNameOf, getUser } from '../users/users'
import { CHALLENGE_TTL_MS, consumeChallenge, issueChallenge } from './challenges'
import { toPasskey } from './passkeys'
import { resolveRelyingParty } from './relying-party'
import type { NewPasskey } from './shapes'
import { passkeys } from './tables'
import {
  loadWebAuthn,
  readChallenge,
  SUPPORTED_ALGORITHMS,
  toBytes,
  toDescriptor,
  verifyRegistration,
} from './webauthn'

const MAX_PASSKEYS_PER_USER = 20

/**
 * Returns the options of `navigator.credentials.create` for a passkey of the caller.
 * @throws 403 UNKNOWN_ORIGIN, 409 TOO_MANY_PASSKEYS, and the errors of `requireRecentAuth`
 */
export async function start(ctx: Ctx, proof: Proof | null | undefined, request: Request) {
  assertNotApiToken(ctx)
  const { id, origin } = await resolveRelyingParty(ctx, request)
  const user = await getUser(ctx, ctx.actor.user)
  const existing = await ctx.db.select().from(passkeys).where(eq(passkeys.user, user._id))
  assertBelowPasskeyLimit(existing.length)
  await requireRecentAuth(ctx, proof ?? {}, request)
  const challenge = await ctx.write((tx) => issueChallenge(tx, 'registration', origin, user._id))
  return loadWebAuthn().generateRegistrationOptions({
    rpID: id,
    rpName: id,
    userID: toBytes(user._id, 'utf8'),
    userName: user.username,
    userDisplayName: fullNameOf(user) || user.username,
    challenge: toBytes(challenge),
    timeout: CHALLENGE_TTL_MS,
    attestationType: 'none',
    // The authenticator finds such a passkey by itself, so users need not type a username.
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: SUPPORTED_ALGORITHMS,
    excludeCredentials: existing.filter(({ host }) => host === id).map(toDescriptor),
  })
}

/**
 * Stores a passkey of the caller, and returns it.
 * @throws 400 INVALID_CHALLENGE, INVALID_PASSKEY; 409 PASSKEY_EXISTS, TOO_MANY_PASSKEYS
 */
export async function register(ctx: Ctx, { name = 'Passkey', credential }: NewPasskey) {
  assertNotApiToken(ctx)
  const { user: _id } = ctx.actor
  const challenge = readChallenge(credential.response.clientDataJSON)
  const pending = await consumeChallenge(ctx, 'registration', challenge, _id)
  if (!pending)
    throw new Problem(400, 'INVALID_CHALLENGE', 'The registration has expired or was already completed. Start again.')
  const registration = await verifyRegistration(credential, pending, challenge)
  if (!registration)
    throw new Problem(
      400,
      'INVALID_PASSKEY',
      'This passkey is not valid for this page. Try again or use another device.',
    )
  const row = {
    _id: Bun.randomUUIDv7(),
    user: _id,
    credential: registration.credential.id,
    publicKey: Buffer.from(registration.credential.publicKey).toString('base64url'),
    counter: registration.credential.counter,
    host: new URL(pending.origin).hostname,
    name,
    transports: credential.response.transports ?? [],
    backedUp: registration.credentialBackedUp,
    created: toIsoString(now()),
  }
  const inserted = await ctx.write(async (tx) => {
    await assertSignedIn(tx, ctx.actor)
    const existing = await tx.select({ _id: passkeys._id }).from(passkeys).where(eq(passkeys.user, _id))
    assertBelowPasskeyLimit(existing.length)
    const inserted = await tx.insert(passkeys).values(row).onConflictDoNothing().returning().get()
    if (inserted) await emitMethodsChanged(ctx, tx, _id, 'passkeys')
    return inserted
  })
  if (!inserted) throw new Problem(409, 'PASSKEY_EXISTS', 'This passkey is already registered. Use another device.')
  return toPasskey(inserted)
}

function assertBelowPasskeyLimit(count: number) {
  if (count >= MAX_PASSKEYS_PER_USER)
    throw new Problem(409, 'TOO_MANY_PASSKEYS', `You have ${MAX_PASSKEYS_PER_USER} passkeys already. Delete one first.`)
}
