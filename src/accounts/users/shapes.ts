import { type Static, t } from 'elysia'
import { change, flag, free, roleName } from '../../core/shapes'
import { listing } from '../../storage/lists'
import { endTokens, orNone, ProfileChange, Proof, Registration, User, url } from '../shapes'

const maybe = t.Optional
const roles = t.Array(roleName, {
  maxItems: 50,
  uniqueItems: true,
  description: 'such as admin, user, plugin, or any of your own',
})
const kept = { roles, profileImage: orNone(url), metadata: free, internalMetadata: free }
const { email, name, firstName, lastName, fullName, birthDate, phone } = ProfileChange.properties

export const NewUser = t.Composite([
  t.Pick(Registration, ['username', 'password']),
  t.Object({ email, name, firstName, lastName, fullName, birthDate, phone }),
  t.Partial(t.Object(kept)),
])
export type NewUser = Static<typeof NewUser>

/** Proof is for those who change what they themselves sign in with. */
export const UserChange = t.Composite([change(NewUser), t.Object({ endTokens }), Proof])
export type UserChange = Static<typeof UserChange>

/** A user in a list, with what was selected. */
export const SomeUser = t.Composite([t.Pick(User, ['_id']), t.Partial(t.Omit(User, ['_id']))])

export const UsersQuery = t.Object({
  ...listing,
  _id: maybe(t.String({ description: 'ids, comma-separated' })),
  username: maybe(t.String({ description: 'what the username contains, in letters of either case' })),
  exact: flag,
  roles: maybe(t.String({ description: 'comma-separated, of which they have any' })),
  q: maybe(t.String({ description: 'what the username, the e-mail address, a name or the phone number contains' })),
  select: maybe(t.String({ description: 'fields, comma-separated; all unless told' })),
})
export type UsersQuery = Static<typeof UsersQuery>

const times = t.Object({ lastDay: t.Number(), lastWeek: t.Number(), lastMonth: t.Number() })
export const UserStats = t.Object({
  total: t.Number(),
  roles: t.Record(t.String(), t.Number(), { description: 'how many have the role' }),
  registered: times,
  active: t.Object(times.properties, { description: 'how many used a session' }),
})
