import { and, count, eq, gt, lt, min } from 'drizzle-orm'
import { DAY, iso, now } from '../../core/clock'
import { type Answer, forbidKeeping } from '../../core/etag'
import type { Lease } from '../../jobs/holding'
import { enqueue } from '../../jobs/queue'
import { removeInSlices } from '../../jobs/removal'
import { answerGrowingPage, type GrowingListing, paged, pageOf } from '../../storage/lists'
import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Ctx } from '../guard'
import { keyOfName } from '../users'
import { devices, mails } from './tables'
import type { TemplateName } from './templates'

export type MailRow = typeof mails.$inferSelect

export type NewMail = {
  to: string
  template: TemplateName
  /** Who gets it, when that is a user. */
  user?: string
  /** What the template speaks of. Nothing secret: tokens are made when it is sent. */
  data?: Record<string, string>
}

/** Has mail sent after this transaction. */
export async function post(tenant: Pick<Tenant, 'tenant'>, tx: Tx, ...all: NewMail[]) {
  const time = now()
  const rows = all.map(({ to, template, user = null, data = {} }) => [
    ...[Bun.randomUUIDv7(), to, keyOfName(to), template, user, JSON.stringify(data), 'waiting', time],
  ])
  await tx.each(
    `insert into mails (_id, recipient, recipient_key, template, "user", data, state, created)
     values (?, ?, ?, ?, ?, ?, ?, ?)`,
    rows,
  )
  await Promise.all(rows.map(([mail]) => enqueue(tenant, tx, { kind: 'mail', payload: { mail } })))
}

const sortable = { _id: mails._id, created: mails.created, sent: mails.sent, to: mails.recipient }

/**
 * A page of the mails of a tenant, the latest first. Those that were sent are told without what they said, and so are all to
 * an API token of limited scope: links in them let in whoever has them.
 */
export async function list(
  ctx: Ctx,
  query: GrowingListing & { to?: string; state?: MailRow['state'] },
  answer: Answer,
) {
  forbidKeeping(answer)
  const page = pageOf(query, sortable)
  const those = and(
    query.to ? eq(mails.recipientKey, keyOfName(query.to)) : undefined,
    query.state ? eq(mails.state, query.state) : undefined,
  )
  const rows = await paged(page, ctx.db.select().from(mails).where(and(those, page.after)))
  const untold = ctx.actor.scopes.length > 0 && { text: null, html: null }
  const show = ({ recipient: to, recipientKey: _, data: __, ...mail }: MailRow) => ({ ...mail, to, ...untold })
  return answerGrowingPage(answer, page, rows, () => ctx.db.$count(mails, those), show)
}

const HOURLY = 20 // mails to one address

/** When an address may get another mail (ms): who asks for many in the name of others floods nobody. */
export async function roomAt(db: Db, recipientKey: string): Promise<number> {
  const since = and(eq(mails.recipientKey, recipientKey), gt(mails.sent, iso(now() - 3_600_000)))
  const lately = await db
    .select({ count: count(), first: min(mails.sent) })
    .from(mails)
    .where(since)
    .get()
  return lately && lately.count >= HOURLY ? Date.parse(lately.first!) + 3_600_000 : now()
}

const KEPT = 30 * DAY
const DEVICE_KEPT = 180 * DAY

/** Removes mails after a month, and what was known of devices that nobody used for half a year. */
export async function removeOld(tenant: Tenant & Lease) {
  await removeInSlices(tenant, mails, mails._id, lt(mails.created, iso(now() - KEPT)))
  await tenant.write((tx) =>
    tx
      .delete(devices)
      .where(lt(devices.seen, iso(now() - DEVICE_KEPT)))
      .run(),
  )
}
