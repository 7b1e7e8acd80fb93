import { type Static, t } from 'elysia'
import { listParameter } from '../../core/query-lists'
import { flag, jsonObject, partialOf, roleName, time, withKeyPolicy } from '../../core/shapes'
import { listQuery } from '../../storage/pagination'
import { endTokens, orEmpty, ProfileChange, Proof, Registration, User, url } from '../shapes'

const maybe = t.Optional
const roles = t.Array(roleName, {
  maxItems: 50,
  uniqueItems: true,
  description: 'admin, user, plugin or a custom role',
})
const adminFields = { roles, profileImage: orEmpty(url), metadata: jsonObject, internalMetadata: jsonObject }
const { email, name, firstName, lastName, fullName, birthDate, phone } = ProfileChange.properties

/** Ignored, it would leave users who can never sign in. */
const unsupportedFields = withKeyPolicy({ unsupported: ['passwordHash'] })

export const NewUser = t.Composite(
  [
    t.Pick(Registration, ['username', 'password']),
    t.Object({ email, name, firstName, lastName, fullName, birthDate, phone }),
    t.Partial(t.Object(adminFields)),
  ],
  unsupportedFields,
)
export type NewUser = Static<typeof NewUser>

/** Admins need a proof to change their own credentials. */
export const UserChange = t.Composite([partialOf(NewUser), t.Object({ endTokens }), Proof], unsupportedFields)
export type UserChange = Static<typeof UserChange>

/** A user in a list, with the selected fields. */
export const UserSummary = t.Composite([t.Pick(User, ['_id']), t.Partial(t.Omit(User, ['_id']))])

export const UsersQuery = t.Object({
  ...listQuery,
  _id: listParameter('ids'),
  username: maybe(t.String({ description: 'text contained in the username, case-insensitive' })),
  exact: flag,
  roles: listParameter('roles: users with any of them'),
  q: maybe(t.String({ description: 'text contained in the username, e-mail address, name or phone number' })),
  select: listParameter('fields; default: all'),
})
export type UsersQuery = Static<typeof UsersQuery>

const periodCounts = t.Object({ lastDay: t.Number(), lastWeek: t.Number(), lastMonth: t.Number() })
export const UserStats = t.Object({
  total: t.Number(),
  roles: t.Record(t.String(), t.Number(), { description: 'number of users with the role' }),
  registered: periodCounts,
  active: t.Object(periodCounts.properties, { description: 'number of users with an active session in the period' }),
})

/** By what a user signs in, as admins see it. */
export const UserSignInState = t.Object({
  emailVerified: t.Boolean(),
  pendingEmail: t.Nullable(t.String({ description: 'replaces the e-mail address once it is confirmed' })),
  password: t.Boolean({ description: 'whether the user has a password' }),
  secondFactor: t.Boolean(),
  passkeys: t.Number(),
  providers: t.Array(t.String(), { description: 'providers with a linked identity' }),
  sessions: t.Number({ description: 'number of sessions that have not ended' }),
  apiTokens: t.Number(),
  lastActive: t.Nullable(time),
})
