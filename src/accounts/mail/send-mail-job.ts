import { eq } from 'drizzle-orm'
import { DAY_MS, now, toIsoString } from '../../core/clock'
import { log } from '../../core/log'
import { Problem } from '../../core/problem'
import type { Job, JobResult } from '../../jobs/queue'
import type { Lease } from '../../jobs/with-lease'
import { JobError, type JobHandler } from '../../jobs/worker'
import { addDailyUse } from '../../limits/daily-use'
import { openQuota } from '../../limits/quota-check'
import { isQuotaExceeded } from '../../limits/quota-description'
import { isMailEnabled, sendMail } from '../../platform/mail/smtp'
import { renderMail } from '../../platform/mail/templates'
import type { Tx } from '../../storage/port'
import { isOutgoingHeld, type Tenant } from '../../tenancy/tenants'
import { issueEmailSignIn } from '../email-signin/request'
import { issueTokenAndCode } from '../one-time-tokens'
import { type UserRow, users } from '../tables'
import { fullNameOf } from '../users/users'
import { issueRevertToken } from './email-changes'
import { findNextSendTime, type MailRow, SENT_MAILS } from './mails'
import { mails } from './tables'
import { getProductName, getTemplate, toShownValues } from './tenant-templates'

const SECURITY_TEMPLATES: MailRow['template'][] = ['emailChanged', 'newDevice', 'passwordRemoved']
const RETRY_FOR_MS = 3 * DAY_MS

type IssuedToken = { token: string; code?: string }

/**
 * Sends a queued mail, or stores its content where mail delivery is disabled or the tenant is a copy. The mail is only
 * rendered now, so no token is stored before. A mail over the quota of the day is not sent.
 */
export const sendMailJob: JobHandler = {
  retryFor: RETRY_FOR_MS,
  async run(tenant: Tenant & Lease, job: Job): Promise<JobResult> {
    const { mail: _id } = job.payload as { mail: string }
    const mail = await tenant.db.select().from(mails).where(eq(mails._id, _id)).get()
    if (mail?.state !== 'waiting') return { state: 'done' }
    const nextAllowed = isMailEnabled() ? await findNextSendTime(tenant.db, mail) : now()
    if (nextAllowed > now()) return { state: 'again', due: nextAllowed }
    const updateMail = (change: Partial<MailRow>) => (tx: Tx) => tx.update(mails).set(change).where(eq(mails._id, _id))
    const user = mail.user ? await tenant.db.select().from(users).where(eq(users._id, mail.user)).get() : undefined
    if (mail.user && !(user && isCurrentRecipient(mail, user)))
      return {
        state: 'done',
        effect: updateMail({ state: 'failed', error: 'The user has another address now or was deleted.' }),
      }
    const issued = await issueMailToken(tenant, mail)
    if (!issued)
      return {
        state: 'done',
        effect: updateMail({ state: 'failed', error: 'The sign-in has expired or was completed.' }),
      }
    const rendered = renderMail(
      await getTemplate(tenant, mail.template),
      await buildTemplateValues(tenant, mail, user, issued),
    )
    const isKept = !isMailEnabled() || (await isOutgoingHeld(tenant.tenant))
    if (isKept) return { state: 'done', effect: updateMail({ state: 'kept', ...rendered }) }
    const reservation = await reserveMail(tenant, mail.template)
    if (reservation instanceof Problem) {
      log.warn({ what: 'MAIL_OVER_QUOTA', tenant: tenant.tenant, mail: _id })
      return { state: 'done', effect: updateMail({ state: 'failed', error: reservation.message }) }
    }
    try {
      await sendMail(tenant, _id, mail.recipient, rendered, await getProductName(tenant))
    } catch (error) {
      reservation?.reset()
      const { message, details } = error as JobError
      if (!(error instanceof JobError)) throw error
      const isFinal = details.permanent || now() - job.created >= RETRY_FOR_MS
      await tenant.write(updateMail({ error: message, ...(isFinal && { state: 'failed' }) }))
      throw error
    }
    const sent = { state: 'sent', sent: toIsoString(now()), subject: rendered.subject, error: null } as const
    return {
      state: 'done',
      effect: async (tx) => {
        await updateMail(sent)(tx)
        await addDailyUse(tx, SENT_MAILS, 1)
        // Until then, use that is measured lacks this mail.
        tx.afterCommit(() => reservation?.keep())
      },
    }
  },
  async findSubject(db, { payload }) {
    const { mail: _id } = payload as { mail: string }
    const row = await db.select({ name: mails.recipient }).from(mails).where(eq(mails._id, _id)).get()
    return row && { kind: 'mail', _id, ...row }
  },
}

/** Reserves a mail of the day's quota, if there is one. Returns the problem when the quota is used up. */
async function reserveMail(tenant: Tenant, template: MailRow['template']) {
  const reservation = await openQuota(tenant, 'mails', 1)
  try {
    // Warnings of what may be an attack are sent in any case, or an attacker could prevent them.
    if (SECURITY_TEMPLATES.includes(template)) reservation?.hold(1)
    else reservation?.add(1)
    return reservation
  } catch (error) {
    if (error instanceof Problem && isQuotaExceeded(error)) return error
    throw error
  }
}

/**
 * Returns whether the recipient of a mail is still an address of the user. Only a verification goes to a pending
 * address.
 */
const isCurrentRecipient = ({ template, recipient, recipientKey }: MailRow, { emailKey, pendingEmail }: UserRow) =>
  template === 'verification' && pendingEmail !== null ? recipient === pendingEmail : recipientKey === emailKey

/**
 * Issues the token, and for some templates the code, that proves that the user has read the mail. The token is an empty
 * string for a template without one, and for a mail with sample values. Returns undefined when a sign-in has ended.
 */
async function issueMailToken(
  tenant: Tenant,
  { template, user, recipient, recipientKey, data }: MailRow,
): Promise<IssuedToken | undefined> {
  if (data.token !== undefined) return { token: '' }
  if (template === 'emailSignIn') return issueEmailSignIn(tenant, data.signIn ?? '')
  if (template === 'emailChanged') return { token: data.change ? await issueRevertToken(tenant, data.change) : '' }
  if (!user || (template !== 'verification' && template !== 'passwordReset')) return { token: '' }
  const mailbox = { emailKey: recipientKey, email: recipient }
  return tenant.write((tx) => issueTokenAndCode(tx, template, user, mailbox))
}

async function buildTemplateValues(tenant: Tenant, mail: MailRow, user: UserRow | undefined, issued: IssuedToken) {
  const name = user ? fullNameOf(user) || user.username : ''
  return { ...issued, ...(await toShownValues(tenant, mail.template, { name, ...mail.data })) }
}
