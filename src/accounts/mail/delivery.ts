import { eq } from 'drizzle-orm'
import { config } from '../../config'
import { DAY, iso, now } from '../../core/clock'
import type { Lease } from '../../jobs/holding'
import type { Ending, Job } from '../../jobs/queue'
import { Failure, type Work } from '../../jobs/work'
import type { Tx } from '../../storage/port'
import { hostsGivenTo } from '../../tenancy/hosts'
import type { Tenant } from '../../tenancy/tenants'
import { giveOnce } from '../one-time'
import { isLoopback } from '../origins'
import { settingsOf } from '../settings'
import { type UserRow, users } from '../tables'
import { fullNameOf } from '../users'
import { revertTokenFor } from './email-changes'
import { type MailRow, roomAt } from './mails'
import { plainValues } from './plain-text'
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
    if (mail.user && !(user && isMeant(mail, user)))
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

/** Whether its recipient is still an address of the user; only a confirmation code goes to one that is pending. */
const isMeant = ({ template, recipient, recipientKey }: MailRow, { emailKey, pendingEmail }: UserRow) =>
  template === 'verification' && pendingEmail !== null ? recipient === pendingEmail : recipientKey === emailKey

/** What proves that its reader has read it. */
async function tokenFor(tenant: Tenant, { template, user, recipient, recipientKey, data }: MailRow): Promise<string> {
  if (template === 'emailChanged') return data.change ? revertTokenFor(tenant, data.change) : ''
  if (!user || (template !== 'verification' && template !== 'passwordReset')) return ''
  return tenant.write((tx) => giveOnce(tx, template, user, { emailKey: recipientKey, email: recipient }))
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
  const name = user ? fullNameOf(user) || user.username : ''
  return { site, token, api: await apiAddressOf(tenant), ...plainValues(mail.template, { name, ...mail.data }) }
}

/** Where the API of a tenant is, by the first host that it was given; empty when it was given none. */
async function apiAddressOf({ tenant }: Tenant): Promise<string> {
  const [host] = await hostsGivenTo(tenant)
  if (!host) return ''
  return isLoopback(host) ? `http://${host}:${config.ATOLL_PORT}/api` : `https://${host}/api`
}
