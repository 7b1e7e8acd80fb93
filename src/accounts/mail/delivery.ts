import { eq } from 'drizzle-orm'
import { DAY, iso, now } from '../../core/clock'
import type { Lease } from '../../jobs/holding'
import type { Ending, Job } from '../../jobs/queue'
import { Failure, type Work } from '../../jobs/work'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { giveOnce } from '../one-time'
import { settingsOf } from '../settings'
import { type UserRow, users } from '../tables'
import { fullNameOf } from '../users'
import { type MailRow, roomAt } from './mails'
import { mails } from './tables'
import { type Template, templates, written } from './templates'
import { send, sendsMail } from './transport'

const PATIENCE = 3 * DAY

/** Sends a mail, or keeps it where no mail is sent. What it says is made only now, so no token is kept in between. */
export const delivery: Work = {
  patience: PATIENCE,
  async run(tenant: Tenant & Lease, job: Job): Promise<Ending> {
    const { mail: _id } = job.payload as { mail: string }
    const mail = await tenant.db.select().from(mails).where(eq(mails._id, _id)).get()
    if (mail?.state !== 'waiting') return { state: 'done' }
    const room = sendsMail() ? await roomAt(tenant.db, mail.recipientKey) : now()
    if (room > now()) return { state: 'again', due: room }
    const note = (change: Partial<MailRow>) => (tx: Tx) => tx.update(mails).set(change).where(eq(mails._id, _id))
    const user = mail.user ? await tenant.db.select().from(users).where(eq(users._id, mail.user)).get() : undefined
    if (mail.user && user?.emailKey !== mail.recipientKey)
      return {
        state: 'done',
        effect: note({ state: 'failed', error: 'Its user has another address now, or is gone.' }),
      }
    const token = await tokenFor(tenant, mail)
    const said = written(await templateOf(tenant, mail.template), await valuesOf(tenant, mail, user, token))
    if (!sendsMail()) return { state: 'done', effect: note({ state: 'kept', ...said }) }
    try {
      await send(tenant, _id, mail.recipient, said)
    } catch (error) {
      const { message, more } = error as Failure
      if (!(error instanceof Failure)) throw error
      const over = more.hopeless || now() - job.created >= PATIENCE
      await tenant.write(note({ error: message, ...(over && { state: 'failed' }) }))
      throw error
    }
    return { state: 'done', effect: note({ state: 'sent', sent: iso(now()), subject: said.subject, error: null }) }
  },
}

/** What proves that its reader has read it. */
async function tokenFor(tenant: Tenant, { template, user, recipientKey }: MailRow): Promise<string> {
  if (!user || (template !== 'verification' && template !== 'passwordReset')) return ''
  return tenant.write((tx) => giveOnce(tx, template, user, { emailKey: recipientKey }))
}

async function templateOf(tenant: Tenant, name: MailRow['template']): Promise<Template> {
  const own = (await settingsOf(tenant, 'mail-templates'))[name]
  const { path, ...standard } = templates[name]
  const [website] = (await settingsOf(tenant, 'app-configuration')).websiteUrls
  const link = website && path ? website.replace(/\/+$/, '') + path : undefined
  // The standard text is not that of the tenant's page, nor the other way round.
  return { ...standard, link, ...own }
}

async function valuesOf(tenant: Tenant, mail: MailRow, user: UserRow | undefined, token: string) {
  const [website = ''] = (await settingsOf(tenant, 'app-configuration')).websiteUrls
  const site = URL.parse(website)?.host ?? tenant.tenant
  return { name: user ? fullNameOf(user) || user.username : '', site, token, ...mail.data }
}
