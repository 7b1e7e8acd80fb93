import type { SMTPTransportOptions, Transporter } from 'nodemailer'
import { config } from '../../config'
import { FairShare } from '../../core/fair-share'
import { JobError } from '../../jobs/worker'
import type { Tenant } from '../../tenancy/tenants'
import type { Mail } from './templates'

const SMTP_TIMEOUT_MS = 20_000 // for each step of a connection

const connectionShare = new FairShare({ running: { total: 5 }, waiting: { perTenant: 1_000 } })

/** Tells whether mail is sent; otherwise it is stored for admins to read. */
export const isMailEnabled = () => !!config.ATOLL_SMTP_URL

// Values of tenants are text, never local files or URLs to load.
const TRANSPORT_OPTIONS = {
  connectionTimeout: SMTP_TIMEOUT_MS,
  greetingTimeout: SMTP_TIMEOUT_MS,
  socketTimeout: SMTP_TIMEOUT_MS,
  disableFileAccess: true,
  disableUrlAccess: true,
}

/** Returns a transport to a mail server. The package is loaded on first use, because it would slow the start down. */
export async function createSmtpTransport(server: SMTPTransportOptions): Promise<Transporter> {
  const { createTransport } = await import('nodemailer')
  return createTransport({ ...server, ...TRANSPORT_OPTIONS })
}

/**
 * Sends a mail by the SMTP server (RFC 5321), with the name of the tenant's product as the sender's, if there is one.
 * Mails with the same id have the same Message-ID.
 * @throws JobError, a permanent one when the server will never accept the mail
 * @throws 503 BUSY when too many mails of the tenant wait
 */
export const sendMail = (tenant: Tenant, _id: string, to: string, mail: Mail, senderName?: string) =>
  connectionShare.run({ tenant: tenant.tenant, caller: to }, async () =>
    sendVia(await createSmtpTransport({ url: config.ATOLL_SMTP_URL }), {
      ...{ _id, from: toSender(config.ATOLL_MAIL_FROM, senderName), to: [to], ...mail },
    }),
  )

/** Returns a sender (RFC 5322) under another name. */
const toSender = (from: string, name = ''): Sender =>
  name ? { name, address: /<([^>]+)>\s*$/.exec(from)?.[1] ?? from } : from

/**
 * Sends a mail by the given transport, and closes it.
 * @throws JobError; when the server refused some of the recipients only, its outcome names them as `refused`
 */
export async function sendVia(transport: Transporter, { _id, from, to, ...mail }: OutgoingMail) {
  const address = typeof from === 'string' ? from : from.address
  const messageId = `<${_id}@${/@([^\s>]+)/.exec(address)?.[1]}>`
  const recipients = to.map((address) => ({ name: '', address }))
  try {
    const sent = await transport.sendMail({ from, to: recipients, messageId, ...mail, headers: AUTO_SUBMITTED_HEADERS })
    if (sent.rejected?.length) throw toRefusal(sent)
  } catch (error) {
    throw error instanceof JobError ? error : toSmtpError(error)
  } finally {
    transport.close()
  }
}

type Sender = string | { name: string; address: string }
type OutgoingMail = Mail & { _id: string; from: Sender; to: string[] }

type SentMail = { rejected?: (string | { address: string })[]; rejectedErrors?: { responseCode?: number }[] }

/** Returns the error of a mail that the server took for some of its recipients only. */
function toRefusal({ rejected = [], rejectedErrors = [] }: SentMail): JobError {
  const refused = rejected.map((recipient) => (typeof recipient === 'string' ? recipient : recipient.address))
  const codes = [...new Set(rejectedErrors.map(({ responseCode = 0 }) => responseCode))]
  const message = `The mail server refused ${refused.join(', ')} (${codes.join(', ')}) and accepted the mail for the others.`
  return new JobError(message, {
    outcome: { message, refused },
    permanent: codes.length > 0 && codes.every((code) => code >= 500),
  })
}

/** Returns the error of a mail server as a JobError. */
export function toSmtpError(error: unknown): JobError {
  const { responseCode = 0, code, command } = error as { responseCode?: number; code?: string; command?: string }
  // A rejection of the recipient or the message is final; other errors may be fixed on our side.
  const permanent = responseCode >= 500 && /^(RCPT TO|DATA)$/.test(command ?? '')
  const reason = responseCode ? `answered ${responseCode}` : `could not be reached (${code ?? 'unknown'})`
  return new JobError(`The mail server ${reason}${command ? ` at ${command}` : ''}.`, { permanent })
}

/** Tells machines not to reply (RFC 3834). */
const AUTO_SUBMITTED_HEADERS = { 'Auto-Submitted': 'auto-generated' }
