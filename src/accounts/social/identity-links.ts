import { Value } from '@sinclair/typebox/value'
import { and, eq } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { Problem } from '../../core/problem'
import { toAddressKey } from '../../core/text-normalization'
import { getSettings } from '../../platform/settings/tenant-settings'
import { Conflict } from '../../storage/errors'
import type { Tx } from '../../storage/port'
import { writeInvalidating } from '../../tenancy/cache'
import type { Tenant } from '../../tenancy/tenants'
import { authSettings } from '../auth-settings'
import { revokeAllCredentials } from '../credential-revocation'
import { consumeOneTimeToken } from '../one-time-tokens'
import { email as emailShape, Registration, url as urlShape } from '../shapes'
import { completeSignUp, type SignInUser, signupClosed } from '../signin'
import { sessions, type UserRow, users } from '../tables'
import { emitMethodsChanged } from '../users/events'
import { registerUser } from '../users/users'
import { invalidState } from './flow-cookie'
import type { Profile } from './providers/provider'
import { identities } from './tables'

const MAX_ATTEMPTS = 5

/**
 * Returns the user of a profile: the one with this identity, otherwise the one with an address that the provider has
 * verified, otherwise a new one.
 * @throws 409 EMAIL_EXISTS when a user has the address but the provider has not verified it; 403 SIGNUP_CLOSED
 */
export async function findOrCreateUser(tenant: Tenant, provider: string, profile: Profile): Promise<SignInUser> {
  const validProfile = toValidProfile(profile)
  for (let attempt = 1; ; attempt++) {
    const user = await findLinkedUser(tenant, provider, validProfile)
    if (user) return user
    try {
      return (
        (await linkByEmail(tenant, provider, validProfile)) ??
        (await createUser(tenant, provider, validProfile, attempt))
      )
    } catch (error) {
      // Another request was faster: with the same username, or for the same user in another window.
      const isRace = error instanceof Conflict || (error instanceof Problem && error.status === 409)
      if (!isRace || attempt === MAX_ATTEMPTS) throw error
    }
  }
}

async function findLinkedUser({ db, write }: Tenant, provider: string, profile: Profile) {
  const row = await db
    .select({ user: users })
    .from(identities)
    .innerJoin(users, eq(users._id, identities.user))
    .where(matchesIdentity(provider, profile))
    .get()
  if (row) await write((tx) => recordIdentityUse(tx, provider, profile))
  return row?.user
}

/**
 * Links an identity to the user with its address. If the account never verified the address, somebody else may have
 * created it. Then all its credentials are revoked, and the address counts as verified.
 */
async function linkByEmail(tenant: Tenant, provider: string, profile: Profile): Promise<SignInUser | undefined> {
  const { email, emailVerified } = profile
  if (!email) return
  const emailKey = toAddressKey(email)
  const existing = await tenant.db.select().from(users).where(eq(users.emailKey, emailKey)).get()
  if (!existing) return
  if (!emailVerified)
    throw new Problem(
      409,
      'EMAIL_EXISTS',
      'An account with this e-mail address already exists. Sign in to it with its existing sign-in method.',
    )
  return writeInvalidating(tenant, 'actors', async (tx) => {
    const user = await tx.select().from(users).where(eq(users.emailKey, emailKey)).get()
    if (!user) return
    const passwordRemoved = !user.emailVerified && (await revokeAllCredentials(tenant, tx, user))
    await insertIdentity(tx, provider, profile, user._id)
    await emitMethodsChanged(tenant, tx, user._id, 'identities')
    if (user.emailVerified) return user
    const change = { emailVerified: true, version: user.version + 1, updated: toIsoString(now()) }
    const changed = await tx.update(users).set(change).where(eq(users._id, user._id)).returning().get()
    return { ...changed, passwordRemoved }
  })
}

const MAX_IDENTITIES_PER_USER = 20

/**
 * Links an identity to the user who requested it, by their one-time token.
 * @throws 400 INVALID_STATE when they have signed out meanwhile, 409 IDENTITY_EXISTS, TOO_MANY_IDENTITIES
 */
export async function linkIdentity(tenant: Tenant, provider: string, profile: Profile, token: string) {
  const validProfile = toValidProfile(profile)
  await tenant.write(async (tx) => {
    const consumed = await consumeOneTimeToken(tx, 'linking', token)
    const session = consumed && (await tx.select().from(sessions).where(eq(sessions._id, consumed.data.session!)).get())
    if (!session) throw invalidState()
    const owner = await tx.select().from(identities).where(matchesIdentity(provider, validProfile)).get()
    if (owner?.user === session.user) return recordIdentityUse(tx, provider, validProfile)
    if (owner)
      throw new Problem(
        409,
        'IDENTITY_EXISTS',
        'This identity is already linked to another account. Sign in with it and unlink it there first.',
      )
    const existing = await tx
      .select({ user: identities.user })
      .from(identities)
      .where(eq(identities.user, session.user))
    if (existing.length >= MAX_IDENTITIES_PER_USER)
      throw new Problem(
        409,
        'TOO_MANY_IDENTITIES',
        `You have ${MAX_IDENTITIES_PER_USER} identities already. Delete one first.`,
      )
    await insertIdentity(tx, provider, validProfile, session.user)
    await emitMethodsChanged(tenant, tx, session.user, 'identities')
  })
}

async function createUser(tenant: Tenant, provider: string, profile: Profile, attempt: number): Promise<UserRow> {
  if (!(await getSettings(tenant, authSettings)).allowSignup) throw signupClosed()
  const { subject: _, emailVerified, profileImage, username, ...names } = profile
  const name = username ?? profile.email?.replace(/@.*/, '') ?? profile.fullName ?? provider
  const suffix = attempt === 1 ? '' : `-${crypto.randomUUID().slice(0, 8)}`
  const privilegedFields = { emailVerified: emailVerified && !!names.email, profileImage: profileImage ?? null }
  const afterInsert = async (tx: Tx, user: UserRow) => {
    await insertIdentity(tx, provider, profile, user._id)
    await completeSignUp(tenant, tx, user)
  }
  return registerUser(
    tenant,
    { ...names, username: name.slice(0, 100) + suffix },
    ['user'],
    afterInsert,
    privilegedFields,
  )
}

const matchesIdentity = (provider: string, { subject }: Profile) =>
  and(eq(identities.provider, provider), eq(identities.subject, subject))

const recordIdentityUse = (tx: Tx, provider: string, profile: Profile) =>
  tx
    .update(identities)
    .set({ email: profile.email ?? null, used: toIsoString(now()) })
    .where(matchesIdentity(provider, profile))
    .run()

function insertIdentity(tx: Tx, provider: string, { subject, email }: Profile, user: string) {
  const time = toIsoString(now())
  return tx.insert(identities).values({ provider, subject, user, email, created: time, used: time })
}

/** Returns a profile without the values that a user could not enter at a sign-up. */
function toValidProfile({ subject, email, emailVerified, profileImage, ...names }: Profile): Profile {
  const shapes = Registration.properties
  const valid = Object.entries(names).filter(([key, value]) => Value.Check(shapes[key as keyof typeof shapes], value))
  return {
    ...Object.fromEntries(valid.filter(([, value]) => value !== undefined)),
    subject: subject.slice(0, 1_000),
    emailVerified,
    ...(email && Value.Check(emailShape, email) && { email }),
    ...(profileImage && Value.Check(urlShape, profileImage) && { profileImage }),
  }
}
