import { createTransport } from 'nodemailer'
import { config } from '../../config'
import { Failure } from '../../jobs/work'
import type { Tenant } from '../../tenancy/tenants'
import { Turns } from '../../tenancy/turns'
import type { Mail } from './templates'

const PATIENCE = 20_000 // ms for each step of a conversation
const AT_ONCE = 5 // conversations with the server
const WAITING = 1_000 // of one tenant

const turns = new Turns(AT_ONCE, WAITING)

/** Whether mail is sent; otherwise it is kept for admins to see. */
export const sendsMail = () => !!config.ATOLL_SMTP_URL

/**
 * Hands a mail to the SMTP server (RFC 5321). The same id is the same message, however often it is sent.
 * @throws Failure, hopeless when the server will never take it.
 */
export async function send(tenant: Tenant, _id: string, to: string, mail: Mail) {
  await turns.take(tenant, async () => {
    const transport = createTransport({
      url: config.ATOLL_SMTP_URL,
      connectionTimeout: PATIENCE,
      greetingTimeout: PATIENCE,
      socketTimeout: PATIENCE,
      // What a tenant's template says is text, never a file of ours or an address to ask.
      disableFileAccess: true,
      disableUrlAccess: true,
    })
    const from = config.ATOLL_MAIL_FROM
    const messageId = `<${_id}@${/@([^\s>]+)/.exec(from)?.[1]}>`
    try {
      await transport.sendMail({ from, to: { name: '', address: to }, messageId, ...mail, headers: AUTOMATIC })
    } catch (error) {
      const { responseCode = 0, code, command } = error as { responseCode?: number; code?: string; command?: string }
      // What is said of this recipient or this message is final; of us, it may be put right.
      const hopeless = responseCode >= 500 && /^(RCPT TO|DATA)$/.test(command ?? '')
      const reason = responseCode ? `answered ${responseCode}` : `could not be asked (${code ?? 'unknown'})`
      throw new Failure(`The mail server ${reason}${command ? ` at ${command}` : ''}.`, { hopeless })
    } finally {
      transport.close()
    }
  })
}

/** RFC 3834: no machine shall answer. */
const AUTOMATIC = { 'Auto-Submitted': 'auto-generated' }
