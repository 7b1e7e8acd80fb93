import { Value } from '@sinclair/typebox/value'
import { and, eq } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import { Conflict } from '../../storage/errors'
import type { Tx } from '../../storage/port'
import { changing } from '../../tenancy/memory'
import type { Tenant } from '../../tenancy/tenants'
import { endAllWaysIn } from '../handover'
import { settingsOf } from '../settings'
import { email as emailShape, Registration, url as urlShape } from '../shapes'
import { signupClosed, welcome } from '../signin'
import { type UserRow, users } from '../tables'
import { keyOfName, register } from '../users'
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
    const user = await met(tenant, provider, known.subject)
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

async function met({ db }: Tenant, provider: string, subject: string) {
  const one = and(eq(identities.provider, provider), eq(identities.subject, subject))
  const found = await db
    .select({ user: users })
    .from(identities)
    .innerJoin(users, eq(users._id, identities.user))
    .where(one)
    .get()
  return found?.user
}

/**
 * Gives a user a further way to sign in. Who made the account without proving its address may not be who has it: then
 * what they could come in by ends, and the address is its owner's from now on.
 */
async function linked(tenant: Tenant, provider: string, { email, emailVerified, subject }: Profile) {
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
    await link(tx, provider, subject, user._id)
    if (user.emailVerified) return user
    const change = { emailVerified: true, version: user.version + 1, updated: iso(now()) }
    return tx.update(users).set(change).where(eq(users._id, user._id)).returning().get()
  })
}

async function made(tenant: Tenant, provider: string, profile: Profile, attempt: number): Promise<UserRow> {
  if (!(await settingsOf(tenant, 'auth-configuration')).allowSignup) throw signupClosed()
  const { subject, emailVerified, profileImage, username, ...names } = profile
  const name = username ?? profile.email?.replace(/@.*/, '') ?? profile.fullName ?? provider
  const suffix = attempt === 1 ? '' : `-${crypto.randomUUID().slice(0, 8)}`
  const given = { emailVerified: emailVerified && !!names.email, profileImage: profileImage ?? null }
  const also = async (tx: Tx, user: UserRow) => {
    await link(tx, provider, subject, user._id)
    await welcome(tenant, tx, user)
  }
  return register(tenant, { ...names, username: name.slice(0, 100) + suffix }, ['user'], also, given)
}

const link = (tx: Tx, provider: string, subject: string, user: string) =>
  tx.insert(identities).values({ provider, subject, user, created: iso(now()) })

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
