import { and, eq, gt, inArray, ne, or, sql } from 'drizzle-orm'
import { isIsoDate, now, toIsoString } from '../../core/clock'
import { badRequest, type FieldError, notFound, Problem } from '../../core/problem'
import { normalizeForLookup, toAddressKey } from '../../core/text-normalization'
import { reserveQuota } from '../../limits/quota-check'
import type { Db, Tx } from '../../storage/port'
import { prepareFirst } from '../../storage/prepared-statements'
import { writeInvalidating } from '../../tenancy/cache'
import { findSupportUser } from '../../tenancy/support-user'
import type { Tenant } from '../../tenancy/tenants'
import type { Actor } from '../actors'
import { emailChanges } from '../mail/tables'
import { revokeOneTimeTokens } from '../one-time-tokens'
import { hashPassword } from '../passwords'
import { revokeOtherSessions } from '../sessions'
import type { Registration } from '../shapes'
import { type UserRow, users } from '../tables'
import { toWorkOwner } from '../work-owner'

const findById = prepareFirst((db) =>
  db
    .select()
    .from(users)
    .where(eq(users._id, sql.placeholder('id'))),
)

/** Returns a user by id. @throws 404 USER_NOT_FOUND */
export const getUser = async ({ db }: Tenant, id: string): Promise<UserRow> =>
  (await findById(db, { id })) ?? notFound('user')

/** Returns the user with this username, otherwise the one with this e-mail address, or undefined. */
export async function findByLogin({ db }: Tenant, name: string): Promise<UserRow | undefined> {
  const key = normalizeForLookup(name)
  return (
    (await db.select().from(users).where(eq(users.usernameKey, key)).get()) ??
    (await db
      .select()
      .from(users)
      .where(eq(users.emailKey, toAddressKey(name)))
      .get())
  )
}

type LoginFields = Pick<Registration, 'username' | 'password' | 'authType'>
/** The fields of a new user; null counts as missing. */
type NewUserFields = LoginFields & {
  [field in Exclude<keyof Registration, keyof LoginFields>]?: Registration[field] | null
}

/** Fields of a new user that a sign-up cannot set. */
type PrivilegedFields = Partial<Pick<UserRow, 'emailVerified' | 'profileImage' | 'metadata' | 'internalMetadata'>>

/**
 * Creates a user, runs `afterInsert` in the same transaction, and returns the user.
 * @throws 400 INVALID_INPUT, 403 QUOTA_EXCEEDED, 409 USERNAME_EXISTS, EMAIL_EXISTS
 */
export async function registerUser(tenant: Tenant, ...about: NewUserParts): Promise<UserRow> {
  using reservation = await reserveQuota(tenant, 'users', 1)
  const user = await registerUncountedUser(tenant, ...about)
  reservation?.keep()
  return user
}

type NewUserParts = Parameters<typeof registerUncountedUser> extends [Tenant, ...infer Rest] ? Rest : never

/** Creates a user as `registerUser` does, whatever the quota of users: for the operator, also by the command line. */
export async function registerUncountedUser(
  tenant: Tenant,
  { password, authType: _, ...input }: NewUserFields,
  roles = ['user'],
  afterInsert?: (tx: Tx, user: UserRow) => Promise<unknown>,
  privilegedFields: PrivilegedFields = {},
  hash = (toHash: string) => hashPassword(toWorkOwner(tenant), toHash),
): Promise<UserRow> {
  if (password !== undefined) requireValidPassword(password)
  await assertLoginAvailable(tenant.db, { _id: '', ...toLoginKeys(input) })
  const passwordHash = password === undefined ? null : await hash(password)
  const time = toIsoString(now())
  assertBirthDate(input)
  const row = {
    _id: Bun.randomUUIDv7(),
    ...input,
    ...{ email: input.email || null, fullName: input.fullName || null },
    usernameKey: normalizeForLookup(input.username),
    ...toLoginKeys(input),
    emailVerified: false,
    password: passwordHash,
    roles,
    metadata: {},
    internalMetadata: {},
    version: 1,
    created: time,
    updated: time,
    ...privilegedFields,
  }
  return tenant.write(async (tx) => {
    await assertLoginAvailable(tx, row)
    const user = await tx.insert(users).values(row).returning().get()
    await afterInsert?.(tx, user)
    return user
  })
}

/**
 * Sets a password without the current one, for operators of the installation. Ends the user's sessions and any pending
 * change of their e-mail address.
 * @throws 400 INVALID_INPUT, 404 USER_NOT_FOUND
 */
export async function setPassword(tenant: Tenant, name: string, password: string) {
  const { _id } = (await findByLogin(tenant, name)) ?? notFound('user')
  const hash = await hashPassword(toWorkOwner(tenant), requireValidPassword(password))
  await writeInvalidating(tenant, 'actors', async (tx) => {
    await revokeOtherSessions(tx, _id, {})
    await revokeOneTimeTokens(tx, 'verification', _id)
    const version = sql`${users.version} + 1`
    const change = { password: hash, pendingEmail: null, version, updated: toIsoString(now()) }
    if (!(await tx.update(users).set(change).where(eq(users._id, _id)).returning().get())) notFound('user')
  })
}

/**
 * Hashes a user's password at the current cost. Returns the new row, or undefined when the password was changed
 * meanwhile.
 */
export async function rehashPassword(tenant: Tenant, { _id, password: before }: UserRow, password: string) {
  const hash = await hashPassword({ tenant: tenant.tenant, caller: _id }, password)
  const isUnchanged = and(eq(users._id, _id), eq(users.password, before ?? ''))
  return tenant.write((tx) => tx.update(users).set({ password: hash }).where(isUnchanged).returning().get())
}

/**
 * Replaces a user's roles, and returns the new row.
 * @throws 404 USER_NOT_FOUND, 409 LAST_ADMIN when the tenant would have no admin left
 */
export async function setRoles(tenant: Tenant, name: string, roles: string[]) {
  const { _id } = (await findByLogin(tenant, name)) ?? notFound('user')
  return writeInvalidating(tenant, 'actors', async (tx) => {
    if (!roles.includes('admin')) await assertNotLastAdmin(tx, _id)
    return tx
      .update(users)
      .set({ roles, updated: toIsoString(now()) })
      .where(eq(users._id, _id))
      .returning()
      .get()
  })
}

/** Returns the number of users without that of the operator. */
export async function countUsers({ tenant, db }: Tenant): Promise<number> {
  const operator = await findSupportUser(tenant)
  return db.$count(users, operator ? ne(users._id, operator) : undefined)
}

/** The role of the user as whom the operator opens a tenant. They are no administrator that the tenant could rely on. */
export const OPERATOR_ROLE = 'atoll-operator'

/** Returns whether a user of the tenant other than this one has the role `admin`. */
export async function hasOtherAdmin(db: Db, _id: string): Promise<boolean> {
  const others = await db.selectDistinct({ roles: users.roles }).from(users).where(ne(users._id, _id))
  return others.some(({ roles }) => roles.includes('admin') && !roles.includes(OPERATOR_ROLE))
}

/**
 * It must be called in the writing transaction, so that two concurrent writes cannot both find another admin.
 * @throws 409 LAST_ADMIN
 */
export async function assertNotLastAdmin(tx: Tx, _id: string) {
  const user = await tx.select({ roles: users.roles }).from(users).where(eq(users._id, _id)).get()
  if (!user?.roles.includes('admin')) return
  if (!(await hasOtherAdmin(tx, _id)))
    throw new Problem(409, 'LAST_ADMIN', 'This is the last admin. Make another user an admin first.')
}

/** Returns the fields of users, by id, that other users see beside what belongs to them. */
export async function findUserSummaries(db: Db, ids: string[]) {
  const { _id, fullName, firstName, lastName, profileImage } = users
  const rows = await db
    .select({ _id, fullName, firstName, lastName, profileImage })
    .from(users)
    .where(inArray(users._id, ids))
  return new Map(
    rows.map((user) => [user._id, { _id: user._id, fullName: fullNameOf(user), profileImage: user.profileImage }]),
  )
}

/** Returns the full name of a user, composed of first and last name if they have entered none; it may be empty. */
export const fullNameOf = ({ fullName, firstName, lastName }: Pick<UserRow, 'fullName' | 'firstName' | 'lastName'>) =>
  fullName ?? [firstName, lastName].filter(Boolean).join(' ')

/**
 * Returns the change of a full name. Clients can send back a name that was composed of first and last name, and it
 * stays composed; an empty name is composed again.
 */
export const toFullNameChange = ({ fullName }: { fullName?: string | null }, before: UserRow) =>
  fullName !== undefined && { fullName: fullName === fullNameOf(before) ? before.fullName : fullName || null }

/** Returns the User resource of the API. */
export const toUser = (user: UserRow, privileged: boolean, workspace: Actor['workspace'] = null) => ({
  _id: user._id,
  username: user.username,
  email: user.email ?? '',
  name: user.name ?? '',
  firstName: user.firstName ?? '',
  lastName: user.lastName ?? '',
  fullName: fullNameOf(user),
  profileImage: user.profileImage,
  birthDate: user.birthDate,
  phone: user.phone,
  roles: user.roles,
  metadata: user.metadata,
  workspace,
  created: user.created,
  ...(privileged && { internalMetadata: user.internalMetadata }),
})

const MAX_METADATA_LENGTH = 64 << 10 // characters

/**
 * Returns the metadata.
 * @throws 400 INVALID_INPUT when it is too large
 */
export function assertMetadataSize(metadata: Record<string, unknown>, path = '/metadata') {
  if (JSON.stringify(metadata).length > MAX_METADATA_LENGTH)
    badRequest({ path, message: `The metadata must have at most ${MAX_METADATA_LENGTH} characters as JSON.` })
  return metadata
}

/** @throws 400 INVALID_INPUT */
export function assertBirthDate({ birthDate }: { birthDate?: string | null }) {
  if (birthDate && !isIsoDate(birthDate))
    badRequest({ path: '/birthDate', message: 'This is not a valid date. Use the format YYYY-MM-DD.' })
}

/**
 * Returns the password.
 * @throws 400 INVALID_INPUT when it has fewer than 8 characters or more than 256 bytes
 */
export function requireValidPassword(password: string) {
  const flaws: FieldError[] = []
  if ([...password].length < 8)
    flaws.push({ path: '/password', message: 'The password must have at least 8 characters.' })
  if (Buffer.byteLength(password) > 256)
    flaws.push({ path: '/password', message: 'The password must have at most 256 bytes.' })
  if (flaws.length) badRequest(...flaws)
  return password
}

/** Returns the normalized keys by which usernames and e-mail addresses are compared. */
export const toLoginKeys = ({ username, email }: { username?: string; email?: string | null }) => ({
  ...(username !== undefined && { usernameKey: normalizeForLookup(username) }),
  ...(email !== undefined && { emailKey: email ? toAddressKey(email) : null }),
})

/**
 * Requires that no other user has the username or the e-mail address, neither as username nor as address: both are used
 * to sign in. An address that another user can still restore is also taken.
 * @throws 400 INVALID_INPUT, 409 USERNAME_EXISTS, EMAIL_EXISTS
 */
export async function assertLoginAvailable(
  tx: Pick<Tx, 'select'>,
  row: { _id: string; usernameKey?: string; emailKey?: string | null },
) {
  const findHolder = async (key: string) =>
    (await tx
      .select({ _id: users._id })
      .from(users)
      .where(and(ne(users._id, row._id), or(eq(users.usernameKey, key), eq(users.emailKey, key))))
      .get()) ??
    (await tx
      .select({ _id: emailChanges._id })
      .from(emailChanges)
      .where(
        and(
          ne(emailChanges.user, row._id),
          eq(emailChanges.emailKey, key),
          gt(emailChanges.expires, toIsoString(now())),
        ),
      )
      .limit(1)
      .get())
  if (row.usernameKey === '')
    badRequest({ path: '/username', message: 'The username must contain a visible character.' })
  if (row.usernameKey && (await findHolder(row.usernameKey)))
    throw new Problem(409, 'USERNAME_EXISTS', 'This username is taken. Choose another.')
  if (row.emailKey && (await findHolder(row.emailKey)))
    throw new Problem(409, 'EMAIL_EXISTS', 'This e-mail address is already in use.')
}
