import { isMailEnabled } from '../platform/mail/smtp'
import type { Actor } from './actors'
import type { Ctx } from './context'
import { assertEndTokensWithPassword, authorizeCredentialChange, omitUnchanged } from './credentials'
import { changeEmail } from './mail/email-changes'
import { VERSION_HEADERS } from './session-headers'
import type { ProfileChange } from './shapes'
import { countAttempt } from './signin-throttle'
import type { UserRow } from './tables'
import { updateUser } from './users/user-update'
import { assertBirthDate, getUser, toUser } from './users/users'

/** Returns the caller's own profile. It is serialized once and cached as long as their actor. */
export async function get(ctx: Ctx): Promise<Response> {
  const json =
    serializedProfiles.get(ctx.actor) ?? JSON.stringify(toOwnProfile(await getUser(ctx, ctx.actor.user), ctx.actor))
  serializedProfiles.set(ctx.actor, json)
  return new Response(json, { headers: JSON_HEADERS })
}

const serializedProfiles = new WeakMap<Actor, string>()
const JSON_HEADERS = { 'content-type': 'application/json;charset=utf-8', ...VERSION_HEADERS }

const toOwnProfile = (user: UserRow, { privileged, workspace }: Actor) => ({
  ...toUser(user, privileged, workspace),
  isPrivileged: privileged,
  emailVerified: user.emailVerified,
  pendingEmail: user.pendingEmail,
})

/**
 * Changes the caller's own profile and returns it. A new username or e-mail address requires a recent sign-in or a
 * proof. A new password requires the current one and ends all other sessions.
 * @throws 400, 403 FORBIDDEN, PROOF_REQUIRED, INVALID_CREDENTIALS, 409 USERNAME_EXISTS, EMAIL_EXISTS, 429
 */
export async function change(ctx: Ctx, input: ProfileChange, request: Request) {
  const { password, currentPassword, code, endTokens, metadata, ...rest } = input
  assertEndTokensWithPassword(input)
  assertBirthDate(rest)
  const before = await getUser(ctx, ctx.actor.user)
  const { email, ...fields } = omitUnchanged(rest, before)
  const credentials = { username: fields.username, email, password }
  const passwordHash = await authorizeCredentialChange(ctx, before, credentials, { currentPassword, code }, request)
  if (email && isMailEnabled())
    await countAttempt(ctx, { account: before._id, address: before._id, of: 'verification' })
  const update = { ...fields, email, metadata, passwordHash, endTokens }
  const changed = await updateUser(ctx, before._id, update, { isOwn: true, changeEmail })
  return toOwnProfile(changed, ctx.actor)
}
