import { iso, now } from '../../core/clock'
import type { Tx } from '../../storage/port'
import type { OpenCtx } from '../guard'
import type { UserRow } from '../tables'
import { fullNameOf } from '../users'
import { post } from './mails'

/**
 * Tells the old address, after this transaction, that it is the user's no more. Which one is new it is not told: it may
 * never have been theirs.
 */
export async function tellOldAddress(ctx: OpenCtx, tx: Tx, before: UserRow, after: UserRow) {
  if (!before.email || before.emailKey === after.emailKey) return
  const byAdmin = ctx.actor?.user === after._id ? '' : 'true'
  const data = { name: fullNameOf(after) || after.username, time: iso(now()), byAdmin }
  // For nobody in particular: a mail for a user goes to the address that they have when it is sent.
  await post(ctx, tx, { to: before.email, template: 'emailChanged', data })
}
