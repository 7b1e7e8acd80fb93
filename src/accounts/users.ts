import { and, eq, inArray, ne, or, sql } from 'drizzle-orm'
import { isDate, iso, now } from '../core/clock'
import { type Flaw, invalid, missing, Problem } from '../core/problem'
import type { Db, Tx } from '../storage/port'
import { prepared } from '../storage/store'
import { changing } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import type { Actor } from './actors'
import type { Ctx } from './guard'
import { tellOldAddress } from './mail/address'
import { sendsMail } from './mail/transport'
import { askToVerify } from './mail/verification'
import { hashPassword } from './passwords'
import { proveByPassword } from './proof'
import { endOthers } from './sessions'
import type { ProfileChange, Registration } from './shapes'
import { type UserRow, users } from './tables'
import { countAttempt } from './throttle'
import { tellUpdated } from './users/events'

const statements = prepared((db) => ({
  byId: db
    .select()
    .from(users)
    .where(eq(users._id, sql.placeholder('id')))
    .prepare(),
}))

/** Names are compared without regard to case, width, composition, and what can't be seen. */
export const keyOfName = (name: string) => seen(seen(name).normalize('NFKC')).toLowerCase()

const seen = (text: string) => text.replace(/[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\u2800]/gu, '')

export const find = async ({ db }: Tenant, id: string): Promise<UserRow> =>
  (await statements(db).byId.get({ id })) ?? missing('user')

/** Whom a sign-in means: the one of this username, else of this e-mail address. */
export async function findByName({ db }: Tenant, name: string): Promise<UserRow | undefined> {
  const key = keyOfName(name)
  return (
    (await db.select().from(users).where(eq(users.usernameKey, key)).get()) ??
    (await db.select().from(users).where(eq(users.emailKey, key)).get())
  )
}

/** The caller, as they see themselves: made once, and as good as what is remembered of their credential. */
export async function me(ctx: Ctx): Promise<Response> {
  const json = portraits.get(ctx.actor) ?? JSON.stringify(shownToSelf(await find(ctx, ctx.actor.user), ctx.actor))
  portraits.set(ctx.actor, json)
  return new Response(json, { headers: JSON_HEADERS })
}

const portraits = new WeakMap<Actor, string>()
const JSON_HEADERS = { 'content-type': 'application/json;charset=utf-8' }

const shownToSelf = (user: UserRow, { privileged, workspace }: Actor) => ({
  ...shown(user, privileged, workspace),
  isPrivileged: privileged,
  emailVerified: user.emailVerified,
})

type Named = Pick<Registration, 'username' | 'password' | 'authType'>
/** A new user as they are told of: what is null is as if it were not said. */
type Newcomer = Named & { [field in Exclude<keyof Registration, keyof Named>]?: Registration[field] | null }

/** What only some may give to a new user. */
type Given = Partial<Pick<UserRow, 'emailVerified' | 'profileImage' | 'metadata' | 'internalMetadata'>>

/** A new user, and what is `also` to be done in that transaction. @throws 409 USERNAME_EXISTS, EMAIL_EXISTS; 400. */
export async function register(
  tenant: Tenant,
  { password, ...input }: Newcomer,
  roles = ['user'],
  also?: (tx: Tx, user: UserRow) => Promise<unknown>,
  given: Given = {},
  hash: typeof hashPassword = hashPassword,
): Promise<UserRow> {
  if (password !== undefined) checkedPassword(password)
  await refuseTaken(tenant.db, { _id: '', ...keysOf(input) })
  const passwordHash = password === undefined ? null : await hash(tenant, password)
  const time = iso(now())
  const { authType: _, ...fields } = { authType: undefined, ...input }
  refuseNoDate(fields)
  const row = {
    _id: Bun.randomUUIDv7(),
    ...fields,
    ...{ email: fields.email || null, fullName: fields.fullName || null },
    ...keysOf(fields),
    emailVerified: false,
    password: passwordHash,
    roles,
    metadata: {},
    internalMetadata: {},
    version: 1,
    created: time,
    updated: time,
    ...given,
  }
  return tenant.write(async (tx) => {
    await refuseTaken(tx, row)
    const user = await tx
      .insert(users)
      .values(row as typeof users.$inferInsert)
      .returning()
      .get()
    await also?.(tx, user)
    return user
  })
}

/** Changes the caller's own profile; a new password needs the current one, and ends all other sessions. */
export async function changeProfile(ctx: Ctx, { password, currentPassword, metadata, ...input }: ProfileChange) {
  const fields = { ...input, ...(input.email === '' && { email: null }) }
  await refuseStandIns(ctx, { password, ...input })
  if (fields.email) await countMail(ctx, fields.email)
  refuseNoDate(fields)
  const hash = password === undefined ? undefined : await newPassword(ctx, password, currentPassword)
  const changed = await changing(ctx, 'actors', async (tx) => {
    const user = (await tx.select().from(users).where(eq(users._id, ctx.actor.user)).get()) ?? missing('user')
    const keys = keysOf(fields)
    await refuseTaken(tx, { _id: user._id, ...keys })
    if (hash) await endOthers(tx, user._id, ctx.actor)
    const change = {
      ...fields,
      ...fullNameFrom(fields, user),
      ...keys,
      ...(keys.emailKey !== undefined && keys.emailKey !== user.emailKey && { emailVerified: false }),
      ...(metadata && { metadata: small({ ...user.metadata, ...metadata }) }),
      ...(hash && { password: hash }),
      updated: iso(now()),
    }
    const changed = await tx.update(users).set(change).where(eq(users._id, user._id)).returning().get()
    await tellUpdated(ctx, tx, user, changed)
    await tellOldAddress(ctx, tx, user, changed)
    if (changed.emailKey !== user.emailKey) await askToVerify(ctx, tx, changed)
    return changed
  })
  return shownToSelf(changed, ctx.actor)
}

/**
 * What somebody signs in with is changed neither by an admin in their place nor by an API token for one workspace, which would
 * reach further by it. What they were told can be sent back. @throws 403
 */
async function refuseStandIns(ctx: Ctx, { password, username, email }: ProfileChange) {
  const { impersonator, token } = ctx.actor
  if (!impersonator && !token?.bound) return
  const user = await find(ctx, ctx.actor.user)
  const same = (username ?? user.username) === user.username && (email === undefined || (email || null) === user.email)
  if (password !== undefined || !same)
    throw new Problem(
      403,
      'FORBIDDEN',
      'What somebody signs in with they change themselves, or an admin at /api/users.',
    )
}

/** Mail to an address that is to be proven goes where its user says, so not without end. @throws 429 */
async function countMail(ctx: Ctx, email: string) {
  const { _id, emailKey } = await find(ctx, ctx.actor.user)
  if (sendsMail() && keyOfName(email) !== emailKey)
    await countAttempt(ctx, { account: _id, address: _id, of: 'verification' })
}

/** Sets a password without asking for the old one: for those who run the installation. Ends the user's sessions. */
export async function setPassword(tenant: Tenant, name: string, password: string) {
  const user = (await findByName(tenant, name)) ?? missing('user')
  const hash = await hashPassword(tenant, checkedPassword(password))
  await changing(tenant, 'actors', async (tx) => {
    await endOthers(tx, user._id, {})
    const change = { password: hash, version: user.version + 1, updated: iso(now()) }
    await tx.update(users).set(change).where(eq(users._id, user._id))
  })
}

/** Hashes a user's password as it is hashed now, unless it was changed meanwhile. */
export async function keepHashOf(tenant: Tenant, { _id, password: before }: UserRow, password: string) {
  const hash = await hashPassword(tenant, password)
  const same = and(eq(users._id, _id), eq(users.password, before ?? ''))
  await tenant.write((tx) => tx.update(users).set({ password: hash }).where(same).run())
}

/** Replaces a user's roles. @throws 409 LAST_ADMIN when nobody would be left to administer the tenant. */
export async function setRoles(tenant: Tenant, name: string, roles: string[]) {
  const { _id } = (await findByName(tenant, name)) ?? missing('user')
  return changing(tenant, 'actors', async (tx) => {
    if (!roles.includes('admin')) await refuseLastAdmin(tx, _id)
    return tx
      .update(users)
      .set({ roles, updated: iso(now()) })
      .where(eq(users._id, _id))
      .returning()
      .get()
  })
}

/** In the writing transaction, so that two at once can't both find that another is left. @throws 409 LAST_ADMIN */
export async function refuseLastAdmin(tx: Tx, _id: string) {
  const user = await tx.select({ roles: users.roles }).from(users).where(eq(users._id, _id)).get()
  if (!user?.roles.includes('admin')) return
  const others = await tx.selectDistinct({ roles: users.roles }).from(users).where(ne(users._id, _id))
  if (!others.some(({ roles }) => roles.includes('admin')))
    throw new Problem(409, 'LAST_ADMIN', 'This is the last admin. Make somebody else an admin first.')
}

/** Users as those see them who see something that is theirs, by id. */
export async function cardsOf(db: Db, ids: string[]) {
  const { _id, fullName, firstName, lastName, profileImage } = users
  const found = await db
    .select({ _id, fullName, firstName, lastName, profileImage })
    .from(users)
    .where(inArray(users._id, ids))
  return new Map(
    found.map((user) => [user._id, { _id: user._id, fullName: fullNameOf(user), profileImage: user.profileImage }]),
  )
}

export const fullNameOf = ({ fullName, firstName, lastName }: Pick<UserRow, 'fullName' | 'firstName' | 'lastName'>) =>
  fullName ?? [firstName, lastName].filter(Boolean).join(' ')

/** What was read can be sent back, and a name that was put together stays so; an empty one is put together again. */
export const fullNameFrom = ({ fullName }: { fullName?: string | null }, before: UserRow) =>
  fullName !== undefined && { fullName: fullName === fullNameOf(before) ? before.fullName : fullName || null }

/** A user as others see it: the User resource of the contract. */
export const shown = (user: UserRow, privileged: boolean, workspace: Actor['workspace'] = null) => ({
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

async function newPassword(ctx: Ctx, password: string, current: string | undefined) {
  checkedPassword(password)
  const user = await find(ctx, ctx.actor.user)
  if (!current) return invalid({ path: '/currentPassword', message: 'Give the current password, too.' })
  await proveByPassword(ctx, user, current)
  return hashPassword(ctx, password)
}

const METADATA = 64 << 10 // characters

/** @throws 400 for metadata that is too large */
export function small(metadata: Record<string, unknown>, path = '/metadata') {
  if (JSON.stringify(metadata).length > METADATA)
    invalid({ path, message: `All metadata together has at most ${METADATA} characters.` })
  return metadata
}

/** @throws 400 */
export function refuseNoDate({ birthDate }: { birthDate?: string | null }) {
  if (birthDate && !isDate(birthDate))
    invalid({ path: '/birthDate', message: 'There is no such day. Write it as YYYY-MM-DD.' })
}

/** @throws 400 for a password that is too short or too long */
export function checkedPassword(password: string) {
  const flaws: Flaw[] = []
  if ([...password].length < 8) flaws.push({ path: '/password', message: 'A password has at least 8 characters.' })
  if (Buffer.byteLength(password) > 256) flaws.push({ path: '/password', message: 'A password has at most 256 bytes.' })
  if (flaws.length) invalid(...flaws)
  return password
}

/** What names and addresses are compared by. */
export const keysOf = ({ username, email }: { username?: string; email?: string | null }) => ({
  ...(username !== undefined && { usernameKey: keyOfName(username) }),
  ...(email !== undefined && { emailKey: email ? keyOfName(email) : null }),
})

/** Nobody gets a name that is another's address, or an address that is another's name: both are used to sign in. */
export async function refuseTaken(
  tx: Pick<Tx, 'select'>,
  row: { _id: string; usernameKey?: string; emailKey?: string | null },
) {
  const taken = (key: string) =>
    tx
      .select({ _id: users._id })
      .from(users)
      .where(and(ne(users._id, row._id), or(eq(users.usernameKey, key), eq(users.emailKey, key))))
      .get()
  if (row.usernameKey === '') invalid({ path: '/username', message: 'A username needs a character that can be seen.' })
  if (row.usernameKey && (await taken(row.usernameKey)))
    throw new Problem(409, 'USERNAME_EXISTS', 'This username is taken. Choose another.')
  if (row.emailKey && (await taken(row.emailKey)))
    throw new Problem(409, 'EMAIL_EXISTS', 'Somebody has signed up with this e-mail address already.')
}
