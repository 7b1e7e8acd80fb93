import { eq } from 'drizzle-orm'
import { iso, now } from '../core/clock'
import { missing } from '../core/problem'
import { changing } from '../tenancy/memory'
import type { Actor } from './actors'
import { hashOwnPassword, requireOwner, validateEndTokens, withoutUnchanged } from './credentials'
import type { Ctx } from './guard'
import { changeEmail } from './mail/email-changes'
import { sendsMail } from './mail/transport'
import { assertSignedIn, endApiTokens, endOthers } from './sessions'
import type { ProfileChange } from './shapes'
import { type UserRow, users } from './tables'
import { countAttempt } from './throttle'
import { find, fullNameFrom, keysOf, refuseNoDate, refuseTaken, shown, small } from './users'
import { tellUpdated } from './users/events'

/** The caller's own profile. It is serialized once, and as long-lived as what is remembered of their credential. */
export async function get(ctx: Ctx): Promise<Response> {
  const json = serialized.get(ctx.actor) ?? JSON.stringify(shownToSelf(await find(ctx, ctx.actor.user), ctx.actor))
  serialized.set(ctx.actor, json)
  return new Response(json, { headers: JSON_HEADERS })
}

const serialized = new WeakMap<Actor, string>()
const JSON_HEADERS = { 'content-type': 'application/json;charset=utf-8' }

const shownToSelf = (user: UserRow, { privileged, workspace }: Actor) => ({
  ...shown(user, privileged, workspace),
  isPrivileged: privileged,
  emailVerified: user.emailVerified,
  pendingEmail: user.pendingEmail,
})

/**
 * Changes the caller's own profile. Another username or e-mail address needs proof; a new password needs the current one and
 * ends all other sessions.
 * @throws 400, 403 FORBIDDEN, PROOF_REQUIRED, INVALID_CREDENTIALS, 409 USERNAME_EXISTS, EMAIL_EXISTS, 429
 */
export async function change(ctx: Ctx, input: ProfileChange, request: Request) {
  const { password, currentPassword, code, endTokens, metadata, ...rest } = input
  validateEndTokens(input)
  refuseNoDate(rest)
  const before = await find(ctx, ctx.actor.user)
  const { email, ...fields } = withoutUnchanged(rest, before)
  const proof = { currentPassword, code }
  if (email !== undefined || fields.username !== undefined) await requireOwner(ctx, proof, request)
  if (email && sendsMail()) await countAttempt(ctx, { account: before._id, address: before._id, of: 'verification' })
  const hash = password === undefined ? undefined : await hashOwnPassword(ctx, before, password, proof, request)
  const changed = await changing(ctx, 'actors', async (tx) => {
    await assertSignedIn(tx, ctx.actor)
    const user = (await tx.select().from(users).where(eq(users._id, before._id)).get()) ?? missing('user')
    await refuseTaken(tx, { _id: user._id, ...keysOf({ ...fields, email }) })
    if (hash) await endOthers(tx, user._id, ctx.actor)
    if (hash && endTokens) await endApiTokens(tx, user._id)
    const change = {
      ...fields,
      ...fullNameFrom(fields, user),
      ...keysOf(fields),
      ...(email !== undefined && (await changeEmail(ctx, tx, user, email))),
      ...(metadata && { metadata: small({ ...user.metadata, ...metadata }) }),
      ...(hash && { password: hash }),
      updated: iso(now()),
    }
    const changed = await tx.update(users).set(change).where(eq(users._id, user._id)).returning().get()
    await tellUpdated(ctx, tx, user, changed)
    return changed
  })
  return shownToSelf(changed, ctx.actor)
}
