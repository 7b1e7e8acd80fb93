import { and, eq } from 'drizzle-orm'
import { type Answer, forbidKeeping } from '../../core/etag'
import { missing, Problem } from '../../core/problem'
import { success } from '../../core/shapes'
import type { Tx } from '../../storage/port'
import { networkOf } from '../../tenancy/caller'
import type { Tenant } from '../../tenancy/tenants'
import { findKnownDevice } from '../devices'
import type { Ctx } from '../guard'
import { prove } from '../proof'
import { assertSignedIn } from '../sessions'
import type { Proof } from '../shapes'
import { users } from '../tables'
import { countAttempt, noteSuccess } from '../throttle'
import { refuseTokens } from '../tokens'
import { find } from '../users'
import { discardSealed, sealing } from '../vault/vault'
import { newSecret, uriOf } from './codes'
import { newRecoveryCodes } from './recovery-codes'
import { confirmation, placeOf, spending } from './spending'
import { recoveryCodes, totp } from './tables'

/** Whether the caller has a second factor, and how many recovery codes they have left. */
export async function get({ db, actor }: Ctx) {
  const [enabled, left] = [await isEnabled({ db }, actor.user), eq(recoveryCodes.user, actor.user)]
  return { enabled, recoveryCodes: await db.$count(recoveryCodes, left) }
}

/**
 * A secret for the authenticator app of the caller, who proves who they are. It counts once they confirm it.
 * @throws 409 TOTP_EXISTS, and what `prove` throws
 */
export async function start(ctx: Ctx, proof: Proof | null | undefined, answer: Answer) {
  refuseTokens(ctx)
  forbidKeeping(answer)
  const { _id, username } = await find(ctx, ctx.actor.user)
  if (await isEnabled(ctx, _id)) throw exists()
  await prove(ctx, proof ?? {}, answer.request)
  const secret = newSecret()
  await sealing(ctx, async (tx, vault) => {
    await assertSignedIn(tx, ctx.actor)
    const before = await tx.select().from(totp).where(eq(totp.user, _id)).get()
    if (before?.confirmed) throw exists()
    // Each secret has a number of its own, so that a confirmation of another one is noticed.
    const row = { user: _id, confirmed: false, step: (before?.step ?? 0) - 1 }
    await tx.insert(totp).values(row).onConflictDoUpdate({ target: totp.user, set: row })
    await vault.seal(tx, placeOf(_id), secret)
  })
  return { secret, uri: uriOf(secret, ctx.tenant, username) }
}

/** Makes it count, for who can make codes of it. Answers the recovery codes, this once. @throws 403 INVALID_CODE, 404, 409 */
export async function confirm(ctx: Ctx, code: string, { request, set }: Answer) {
  refuseTokens(ctx)
  forbidKeeping({ request, set })
  const { user } = ctx.actor
  const subjects = await counted(ctx, user, request)
  const confirmed = await confirmation(ctx, user, code)
  const { codes, rows } = newRecoveryCodes(user)
  await ctx.write(async (tx) => {
    await assertSignedIn(tx, ctx.actor)
    const row = (await tx.select().from(totp).where(eq(totp.user, user)).get()) ?? missing('totp')
    if (row.confirmed) throw exists()
    if (!(await confirmed(tx))) throw wrong(403)
    await tx.insert(recoveryCodes).values(rows)
  })
  await noteSuccess(ctx, subjects)
  return { recoveryCodes: codes }
}

/** Takes the caller's second factor away, by a code of it or a recovery code. @throws 403 INVALID_CODE, 404 */
export async function remove(ctx: Ctx, code: string, { request }: Answer) {
  refuseTokens(ctx)
  const { user } = ctx.actor
  if (!(await isEnabled(ctx, user))) missing('totp')
  const subjects = await counted(ctx, user, request)
  const spent = await spending(ctx, user, code)
  await ctx.write(async (tx) => {
    if (!(await spent(tx))) throw wrong(403)
    await discard(tx, user)
  })
  await noteSuccess(ctx, subjects)
  return success
}

/** Takes anybody else's away, for who has lost it and their recovery codes. @throws 403, 404 */
export async function removeOf(ctx: Ctx, user: string) {
  if (user === ctx.actor.user || user === ctx.actor.impersonator) throw needsCode()
  await ctx.write(async (tx) => {
    if (!(await tx.select({ _id: users._id }).from(users).where(eq(users._id, user)).get())) missing('user')
    await discard(tx, user)
  })
  return success
}

/** Whether a user signs in with a second factor. */
export const isEnabled = async ({ db }: Pick<Tenant, 'db'>, user: string) =>
  !!(await db
    .select({ user: totp.user })
    .from(totp)
    .where(and(eq(totp.user, user), eq(totp.confirmed, true)))
    .get())

/** Forgets a user's second factor, also one that was only begun. */
export async function discard(tx: Tx, user: string) {
  await tx.delete(totp).where(eq(totp.user, user))
  await tx.delete(recoveryCodes).where(eq(recoveryCodes.user, user))
  await discardSealed(tx, placeOf(user).purpose, user)
}

/** Counts an attempt at a user's codes. @throws 429 */
export async function counted(tenant: Tenant, user: string, request: Request) {
  const device = await findKnownDevice(request, tenant, user)
  const subjects = {
    account: user,
    address: networkOf(request),
    device,
    telling: { user },
    of: 'second factor',
  } as const
  await countAttempt(tenant, subjects)
  return subjects
}

export const wrong = (status: 401 | 403) =>
  new Problem(status, 'INVALID_CODE', 'The code is not right, or was used already. Wait for the next one.')

const needsCode = () =>
  new Problem(
    403,
    'FORBIDDEN',
    'Remove your own second factor by DELETE /api/me/totp, with a code of it or a recovery code, or ask another admin.',
  )

const exists = () =>
  new Problem(409, 'TOTP_EXISTS', 'You have a second factor already. Take it away first, by a code of it.')
