import { and, count, eq, gt, lt, lte, min } from 'drizzle-orm'
import { DAY_MS, HOUR_MS, now, toIsoString } from '../../core/clock'
import { toAddressKey } from '../../core/text-normalization'
import { deleteInBatches } from '../../jobs/batch-delete'
import { enqueue } from '../../jobs/queue'
import type { Lease } from '../../jobs/with-lease'
import { readDailyUse } from '../../limits/daily-use'
import { assertQuotaLeft } from '../../limits/quota-check'
import { isMailEnabled } from '../../platform/mail/smtp'
import { applyPage, type GrowingListQuery, parsePage, toGrowingListPage } from '../../storage/pagination'
import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Ctx } from '../context'
import { devices, mails } from './tables'

export type MailRow = typeof mails.$inferSelect

/** A mail to be queued. */
export type NewMail = {
  to: string
  template: MailRow['template']
  /** The id of the recipient, if they are a user. */
  user?: string
  /** Values for the template. They are not secret: tokens are issued when the mail is sent. */
  data?: Record<string, string>
}

/** Queues mails, which are sent after this transaction. */
export async function queueMail(tenant: Pick<Tenant, 'tenant'>, tx: Tx, ...newMails: NewMail[]) {
  const time = now()
  const rows = newMails.map(({ to, template, user = null, data = {} }) => [
    ...[Bun.randomUUIDv7(), to, toAddressKey(to), template, user, JSON.stringify(data), 'waiting', time],
  ])
  await tx.executeMany(
    `insert into mails (_id, recipient, recipient_key, template, "user", data, state, created)
     values (?, ?, ?, ?, ?, ?, ?, ?)`,
    rows,
  )
  await Promise.all(rows.map(([mail]) => enqueue(tenant, tx, { kind: 'mail', payload: { mail } })))
}

const MAX_MAILS_PER_HOUR = 20 // per address
const MAX_OWN_MAILS_PER_HOUR = 10 // per address, beside those that others requested

/**
 * Queues a mail that a stranger can cause again and again, unless as many of its kind wait for the address as it gets
 * in an hour: the others would arrive for days.
 */
export async function queueRepeatableMail(tenant: Pick<Tenant, 'tenant'>, tx: Tx, mail: NewMail) {
  const isWaiting = and(
    eq(mails.recipientKey, toAddressKey(mail.to)),
    eq(mails.template, mail.template),
    eq(mails.state, 'waiting'),
  )
  if ((await tx.$count(mails, isWaiting)) < MAX_MAILS_PER_HOUR) await queueMail(tenant, tx, mail)
}

/** The value of a mail that was requested by a device of its user. */
export const REQUESTED_BY_KNOWN_DEVICE = { requestedBy: 'known device' }

/** Queues a mail that somebody requested: past the mails of strangers where a device of the user did. */
export const queueRequestedMail = (tenant: Pick<Tenant, 'tenant'>, tx: Tx, mail: NewMail, isKnownDevice = false) =>
  isKnownDevice
    ? queueMail(tenant, tx, { ...mail, data: { ...mail.data, ...REQUESTED_BY_KNOWN_DEVICE } })
    : queueRepeatableMail(tenant, tx, mail)

/** The kind under which sent mails are counted for each day. */
export const SENT_MAILS = 'mails'

/** Returns how many mails were sent today (UTC). */
export const countSentToday = (tenant: Tenant) => readDailyUse(tenant, SENT_MAILS)

/** Checks that another mail may be sent today, for callers who wait for one. @throws 403 QUOTA_EXCEEDED */
export async function assertMailQuota(tenant: Tenant) {
  if (isMailEnabled()) await assertQuotaLeft(tenant, 'mails')
}

const sortable = { _id: mails._id, created: mails.created, sent: mails.sent, to: mails.recipient }

/**
 * Returns a page of the mails of a tenant, latest first. Mails that were sent have no content. An API token with scopes
 * gets no content at all, because links in a mail grant access.
 */
export async function listMails(ctx: Ctx, query: GrowingListQuery & { to?: string; state?: MailRow['state'] }) {
  const page = parsePage(query, sortable)
  const matchesQuery = and(
    query.to ? eq(mails.recipientKey, toAddressKey(query.to)) : undefined,
    query.state ? eq(mails.state, query.state) : undefined,
  )
  const rows = await applyPage(page, ctx.db.select().from(mails).where(and(matchesQuery, page.after)))
  const redacted = ctx.actor.scopes.length > 0 && { text: null, html: null }
  const toMail = ({ recipient: to, recipientKey: _, data: __, ...mail }: MailRow) => ({ ...mail, to, ...redacted })
  return toGrowingListPage(page, rows, () => ctx.db.$count(mails, matchesQuery), toMail)
}

/**
 * Returns when (ms) an address may get another mail, so that nobody can flood it by requests in the name of its owner.
 */
export async function findNextSendTime(
  db: Db,
  { recipientKey, data = {} }: Pick<MailRow, 'recipientKey'> & Partial<MailRow>,
): Promise<number> {
  const isOwn = data.requestedBy === REQUESTED_BY_KNOWN_DEVICE.requestedBy
  const max = isOwn ? MAX_MAILS_PER_HOUR + MAX_OWN_MAILS_PER_HOUR : MAX_MAILS_PER_HOUR
  const isRecent = and(
    eq(mails.recipientKey, recipientKey),
    gt(mails.sent, toIsoString(now() - HOUR_MS)),
    lte(mails.sent, toIsoString(now() + HOUR_MS)), // later ones were sent while the clock was ahead
  )
  const recent = await db
    .select({ count: count(), first: min(mails.sent) })
    .from(mails)
    .where(isRecent)
    .get()
  return recent && recent.count >= max ? Date.parse(recent.first!) + HOUR_MS : now()
}

const MAIL_RETENTION_MS = 30 * DAY_MS
const DEVICE_RETENTION_MS = 180 * DAY_MS

/** Removes mails after 30 days, and devices that were not used for 180 days. */
export async function removeOld(tenant: Tenant & Lease) {
  await deleteInBatches(tenant, mails, mails._id, lt(mails.created, toIsoString(now() - MAIL_RETENTION_MS)))
  await deleteInBatches(tenant, devices, devices.device, lt(devices.seen, toIsoString(now() - DEVICE_RETENTION_MS)))
}
