import { Value } from '@sinclair/typebox/value'
import { and, eq } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import { Conflict } from '../../storage/errors'
import type { Tx } from '../../storage/port'
import { changing } from '../../tenancy/memory'
import type { Tenant } from '../../tenancy/tenants'
import { endAllWaysIn } from '../handover'
import { takeOnce } from '../one-time'
import { settingsOf } from '../settings'
import { email as emailShape, Registration, url as urlShape } from '../shapes'
import { signupClosed, welcome } from '../signin'
import { sessions, type UserRow, users } from '../tables'
import { keyOfName, register } from '../users'
import { tellUser } from '../users/events'
import { stale } from './journey'
import type { Profile } from './providers/kind'
import { identities } from './tables'

const ATTEMPTS = 5

/**
 * The user whom a provider means: whom it meant before, else whose address it has proven, else a new one.
 * @throws 409 EMAIL_EXISTS for somebody's address that it has not proven; 403 SIGNUP_CLOSED
 */
export async function userBehind(tenant: Tenant, provider: string, profile: Profile): Promise<UserRow> {
  const known = profileThatFits(profile)
  for (let attempt = 1; ; attempt++) {
    const user = await met(tenant, provider, known)
    if (user) return user
    try {
      return (await linked(tenant, provider, known)) ?? (await made(tenant, provider, known, attempt))
    } catch (error) {
      // Somebody was faster: with this name, or as the same person in another window.
      const again = error instanceof Conflict || (error instanceof Problem && error.status === 409)
      if (!again || attempt === ATTEMPTS) throw error
    }
  }
}

async function met({ db, write }: Tenant, provider: string, profile: Profile) {
  const found = await db
    .select({ user: users })
    .from(identities)
    .innerJoin(users, eq(users._id, identities.user))
    .where(meant(provider, profile))
    .get()
  if (found) await write((tx) => noteUse(tx, provider, profile))
  return found?.user
}

/**
 * Gives a user a further way to sign in. Who made the account without proving its address may not be who has it: then
 * what they could come in by ends, and the address is its owner's from now on.
 */
async function linked(tenant: Tenant, provider: string, profile: Profile) {
  const { email, emailVerified } = profile
  if (!email) return
  const emailKey = keyOfName(email)
  const found = await tenant.db.select().from(users).where(eq(users.emailKey, emailKey)).get()
  if (!found) return
  if (!emailVerified)
    throw new Problem(
      409,
      'EMAIL_EXISTS',
      'Somebody has signed up with this e-mail address. Sign in as you did before.',
    )
  return changing(tenant, 'actors', async (tx) => {
    const user = await tx.select().from(users).where(eq(users.emailKey, emailKey)).get()
    if (!user) return
    if (!user.emailVerified) await endAllWaysIn(tx, user._id)
    await link(tx, provider, profile, user._id)
    if (user.emailVerified) return user
    const change = { emailVerified: true, version: user.version + 1, updated: iso(now()) }
    return tx.update(users).set(change).where(eq(users._id, user._id)).returning().get()
  })
}

const MOST = 20

/**
 * Gives the user who has asked for it, by a token of theirs, a further way to sign in.
 * @throws 400 INVALID_STATE when they are signed out meanwhile, 409 IDENTITY_EXISTS, TOO_MANY_IDENTITIES
 */
export async function linkTo(tenant: Tenant, provider: string, profile: Profile, token: string) {
  const known = profileThatFits(profile)
  await tenant.write(async (tx) => {
    const taken = await takeOnce(tx, 'linking', token)
    const begun = taken && (await tx.select().from(sessions).where(eq(sessions._id, taken.data.session!)).get())
    if (!begun) throw stale()
    const owner = await tx.select().from(identities).where(meant(provider, known)).get()
    if (owner?.user === begun.user) return noteUse(tx, provider, known)
    if (owner)
      throw new Problem(
        409,
        'IDENTITY_EXISTS',
        'Another account is signed in to by this one already. Sign in by it, and take it away there first.',
      )
    const have = await tx.select({ user: identities.user }).from(identities).where(eq(identities.user, begun.user))
    if (have.length >= MOST)
      throw new Problem(409, 'TOO_MANY_IDENTITIES', `There are ${MOST} identities already. Remove one first.`)
    await link(tx, provider, known, begun.user)
    const user = await tx.select().from(users).where(eq(users._id, begun.user)).get()
    await tellUser(tenant, tx, 'user-updated', user!, { changed: ['identities'] })
  })
}

async function made(tenant: Tenant, provider: string, profile: Profile, attempt: number): Promise<UserRow> {
  if (!(await settingsOf(tenant, 'auth-configuration')).allowSignup) throw signupClosed()
  const { subject: _, emailVerified, profileImage, username, ...names } = profile
  const name = username ?? profile.email?.replace(/@.*/, '') ?? profile.fullName ?? provider
  const suffix = attempt === 1 ? '' : `-${crypto.randomUUID().slice(0, 8)}`
  const given = { emailVerified: emailVerified && !!names.email, profileImage: profileImage ?? null }
  const also = async (tx: Tx, user: UserRow) => {
    await link(tx, provider, profile, user._id)
    await welcome(tenant, tx, user)
  }
  return register(tenant, { ...names, username: name.slice(0, 100) + suffix }, ['user'], also, given)
}

const meant = (provider: string, { subject }: Profile) =>
  and(eq(identities.provider, provider), eq(identities.subject, subject))

const noteUse = (tx: Tx, provider: string, profile: Profile) =>
  tx
    .update(identities)
    .set({ email: profile.email ?? null, used: iso(now()) })
    .where(meant(provider, profile))
    .run()

function link(tx: Tx, provider: string, { subject, email }: Profile, user: string) {
  const time = iso(now())
  return tx.insert(identities).values({ provider, subject, user, email, created: time, used: time })
}

/** What of it we would take from the user themselves. */
function profileThatFits({ subject, email, emailVerified, profileImage, ...names }: Profile): Profile {
  const shapes = Registration.properties
  const fitting = Object.entries(names).filter(([key, value]) => Value.Check(shapes[key as keyof typeof shapes], value))
  return {
    ...Object.fromEntries(fitting.filter(([, value]) => value !== undefined)),
    subject: subject.slice(0, 1_000),
    emailVerified,
    ...(email && Value.Check(emailShape, email) && { email }),
    ...(profileImage && Value.Check(urlShape, profileImage) && { profileImage }),
  }
}
