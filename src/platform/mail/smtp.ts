import type { SMTPTransportOptions, Transporter } from 'nodemailer'
import { config } from '../../config'
import { JobError } from '../../jobs/worker'
import { FairSemaphore } from '../../tenancy/fair-semaphore'
import type { Tenant } from '../../tenancy/tenants'
import type { Mail } from './templates'

const SMTP_TIMEOUT_MS = 20_000 // ms for each step of a conversation
const SMTP_CONCURRENCY = 5 // conversations with the server
const MAX_WAITING_PER_TENANT = 1_000 // of one tenant

const sendQueue = new FairSemaphore(SMTP_CONCURRENCY, MAX_WAITING_PER_TENANT)

/** Whether mail is sent; otherwise it is kept for admins to see. */
export const isMailEnabled = () => !!config.ATOLL_SMTP_URL

// What tenants say is text, never a file of ours or an address to ask.
const TRANSPORT_OPTIONS = {
  connectionTimeout: SMTP_TIMEOUT_MS,
  greetingTimeout: SMTP_TIMEOUT_MS,
  socketTimeout: SMTP_TIMEOUT_MS,
  disableFileAccess: true,
  disableUrlAccess: true,
}

/** A way to a server that takes mail. The package is loaded by the first who needs it: a start shall not wait for it. */
export async function createSmtpTransport(server: SMTPTransportOptions): Promise<Transporter> {
  const { createTransport } = await import('nodemailer')
  return createTransport({ ...server, ...TRANSPORT_OPTIONS })
}

/**
 * Hands a mail to the SMTP server (RFC 5321). The same id is the same message, however often it is sent.
 * @throws Failure, hopeless when the server will never take it.
 */
export const sendMail = (tenant: Tenant, _id: string, to: string, mail: Mail) =>
  sendQueue.run(tenant, async () =>
    sendVia(await createSmtpTransport({ url: config.ATOLL_SMTP_URL }), {
      ...{ _id, from: config.ATOLL_MAIL_FROM, to: [to], ...mail },
    }),
  )

/** The same by another way out, which is closed after it. @throws Failure */
export async function sendVia(transport: Transporter, { _id, from, to, ...mail }: OutgoingMail) {
  const messageId = `<${_id}@${/@([^\s>]+)/.exec(from)?.[1]}>`
  const recipients = to.map((address) => ({ name: '', address }))
  try {
    await transport.sendMail({ from, to: recipients, messageId, ...mail, headers: AUTO_SUBMITTED_HEADERS })
  } catch (error) {
    throw toSmtpError(error)
  } finally {
    transport.close()
  }
}

type OutgoingMail = Mail & { _id: string; from: string; to: string[] }

/** Why a mail server does not do what it is asked. */
export function toSmtpError(error: unknown): JobError {
  const { responseCode = 0, code, command } = error as { responseCode?: number; code?: string; command?: string }
  // What is said of this recipient or this message is final; of us, it may be put right.
  const hopeless = responseCode >= 500 && /^(RCPT TO|DATA)$/.test(command ?? '')
  const reason = responseCode ? `answered ${responseCode}` : `could not be reached (${code ?? 'unknown'})`
  return new JobError(`The mail server ${reason}${command ? ` at ${command}` : ''}.`, { permanent: hopeless })
}

/** RFC 3834: no machine shall answer. */
const AUTO_SUBMITTED_HEADERS = { 'Auto-Submitted': 'auto-generated' }
