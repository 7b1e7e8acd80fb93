import type { TString } from '@sinclair/typebox'
import { type Static, t } from 'elysia'
import { id, jsonObject, line, partialOf, text, textMatching, time } from '../core/shapes'

const date = textMatching('^\\d{4}-\\d{2}-\\d{2}$', 'Write the date as YYYY-MM-DD.', { description: 'YYYY-MM-DD' })
// An invisible character could make two addresses look the same, or start a new line.
const INVISIBLE_CHARS = '\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff'
const EMAIL_EXCLUDED_CHARS = `\\s@<>,;:"()\\[\\]\\\\${INVISIBLE_CHARS}`
export const email = textMatching(
  `^[^${EMAIL_EXCLUDED_CHARS}]+@[^${EMAIL_EXCLUDED_CHARS}]+\\.[^${EMAIL_EXCLUDED_CHARS}.]+$`,
  'This is not an e-mail address.',
  { maxLength: 254 },
)
export const url = textMatching(
  '^(https?://|/(?![/\\\\]))[^\\s]*$',
  'Use a URL that begins with https://, http:// or a single /, without spaces.',
  { maxLength: 2_000 },
)
const username = textMatching(
  '^[^\\s\\u0000-\\u001f\\u007f]([^\\u0000-\\u001f\\u007f]*[^\\s\\u0000-\\u001f\\u007f])?$',
  'The username must not begin or end with a space or contain control characters.',
  { minLength: 1, maxLength: 128 },
)
const password = text(1_000)
const name = line(200)
const phone = line(40)
const orNull = t.Nullable
/** Accepts an empty value as none, so that clients can send back what they read. */
export const orEmpty = (shape: TString) => t.Union([shape, t.Literal(''), t.Null()])
const maybe = t.Optional

/** The proof that a signed-in user is present, and not somebody else at their screen. */
export const Proof = t.Object({
  currentPassword: maybe(password),
  code: maybe(
    t.String({ minLength: 1, maxLength: 100, description: 'two-factor code, if a second factor is enabled' }),
  ),
})
export type Proof = Static<typeof Proof>

export const endTokens = maybe(t.Boolean({ description: 'with a new password: also revokes all API tokens' }))

export const ActiveWorkspace = t.Object({
  _id: id,
  name: t.String(),
  roles: t.Array(t.String()),
  labels: t.Array(t.String()),
})

export const User = t.Object({
  _id: id,
  username: t.String(),
  email: t.String(),
  name: t.String(),
  firstName: t.String(),
  lastName: t.String(),
  fullName: t.String(),
  profileImage: orNull(t.String()),
  birthDate: orNull(t.String()),
  phone: orNull(t.String()),
  roles: t.Array(t.String()),
  metadata: jsonObject,
  internalMetadata: maybe(jsonObject),
  workspace: orNull(ActiveWorkspace),
  created: time,
})
export const Me = t.Composite([
  User,
  t.Object({
    isPrivileged: t.Boolean(),
    emailVerified: t.Boolean(),
    pendingEmail: orNull(t.String({ description: 'replaces email once confirmed' })),
  }),
])

const authType = maybe(t.Literal('oauth', { description: 'oauth returns tokens; otherwise, a session cookie is set' }))

export const SignIn = t.Object(
  {
    username: maybe(t.String({ minLength: 1, maxLength: 254, description: 'username or e-mail address' })),
    password: maybe(password),
    authType,
    workspace: maybe(id),
    challenge: maybe(
      t.String({
        maxLength: 200,
        description: 'challenge from a 401 SECOND_FACTOR_REQUIRED; send with code instead of username and password',
      }),
    ),
    code: maybe(t.String({ maxLength: 100, description: 'two-factor code or recovery code' })),
    refreshToken: maybe(
      t.String({
        maxLength: 200,
        description:
          'last refresh token of this device, if any, so that failed attempts from elsewhere do not lock the device out',
      }),
    ),
  },
  {
    'x-schema': {
      anyOf: [
        { 'x-name': 'with password', required: ['username', 'password'] },
        { 'x-name': 'with code', required: ['challenge', 'code'] },
      ],
    },
  },
)
export type SignIn = Static<typeof SignIn>

export const Registration = t.Object({
  username,
  password: maybe(password),
  email: maybe(orEmpty(email)),
  name: maybe(orNull(name)),
  firstName: maybe(orNull(name)),
  lastName: maybe(orNull(name)),
  fullName: maybe(orNull(name)),
  birthDate: maybe(orNull(date)),
  phone: maybe(orNull(phone)),
  authType,
})
export type Registration = Static<typeof Registration>
export const SignUp = t.Composite([t.Omit(Registration, ['password']), t.Object({ password })])

export const ProfileChange = partialOf(
  t.Object({
    username,
    email: orEmpty(email),
    name: orNull(name),
    firstName: orNull(name),
    lastName: orNull(name),
    fullName: orNull(name),
    birthDate: orNull(date),
    phone: orNull(phone),
    profileImage: orNull(url),
    metadata: jsonObject,
    password,
    endTokens,
    ...Proof.properties,
  }),
)
export type ProfileChange = Static<typeof ProfileChange>

export const UserAndWorkspace = t.Object({
  user: User,
  workspace: orNull(ActiveWorkspace),
  passwordRemoved: maybe(
    t.Boolean({
      description:
        'whether this sign-in removed the password, because it was set before the address was verified. Offer the user to choose a new one.',
    }),
  ),
})
const Tokens = t.Object({
  token: t.String(),
  refreshToken: t.String(),
  expiresIn: t.Number({ description: 'seconds' }),
})
export const TokensAndUser = t.Composite([Tokens, UserAndWorkspace])
export const SignedIn = t.Object({ payload: t.Union([TokensAndUser, UserAndWorkspace]) })
export const RefreshedTokens = t.Object({ payload: TokensAndUser })
export const RefreshedCookie = t.Object({ payload: UserAndWorkspace })

export const RefreshRequest = maybe(t.Object({ refreshToken: maybe(t.Nullable(t.String())) }))

export const Session = t.Object({
  _id: id,
  kind: t.String(),
  userAgent: t.String(),
  address: t.String(),
  created: time,
  used: time,
  expires: time,
  current: t.Boolean(),
})

export const ApiToken = t.Object({
  _id: id,
  nickname: t.String(),
  tokenPrefix: t.String(),
  scopes: t.Array(t.String()),
  expiresAt: orNull(time),
  lastUsedAt: orNull(time),
  workspace: orNull(id),
  created: time,
})

export const NewApiToken = t.Object({
  nickname: line(100, 1),
  scopes: maybe(
    t.Array(
      textMatching(
        '^[a-z]+(-[a-z]+)*:(read|write)$',
        'Write a scope as an area with :read or :write, such as entities:read.',
      ),
      { maxItems: 50, description: 'such as "entities:read"; empty grants all permissions of the user' },
    ),
  ),
  expiresAt: maybe(t.String({ format: 'date-time' })),
  workspace: maybe(id),
  ...Proof.properties,
})
export type NewApiToken = Static<typeof NewApiToken>
export const IssuedApiToken = t.Object({ token: t.String({ description: 'returned only once' }), apiToken: ApiToken })
