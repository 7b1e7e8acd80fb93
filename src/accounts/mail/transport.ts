import type { SMTPTransportOptions, Transporter } from 'nodemailer'
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

// What tenants say is text, never a file of ours or an address to ask.
const BOUNDS = {
  connectionTimeout: PATIENCE,
  greetingTimeout: PATIENCE,
  socketTimeout: PATIENCE,
  disableFileAccess: true,
  disableUrlAccess: true,
}

/** A way to a server that takes mail. The package is loaded by the first who needs it: a start shall not wait for it. */
export async function transportTo(server: SMTPTransportOptions): Promise<Transporter> {
  const { createTransport } = await import('nodemailer')
  return createTransport({ ...server, ...BOUNDS })
}

/**
 * Hands a mail to the SMTP server (RFC 5321). The same id is the same message, however often it is sent.
 * @throws Failure, hopeless when the server will never take it.
 */
export const send = (tenant: Tenant, _id: string, to: string, mail: Mail) =>
  turns.take(tenant, async () =>
    handOver(await transportTo({ url: config.ATOLL_SMTP_URL }), {
      ...{ _id, from: config.ATOLL_MAIL_FROM, to: [to], ...mail },
    }),
  )

/** The same by another way out, which is closed after it. @throws Failure */
export async function handOver(transport: Transporter, { _id, from, to, ...mail }: Letter) {
  const messageId = `<${_id}@${/@([^\s>]+)/.exec(from)?.[1]}>`
  const addressed = to.map((address) => ({ name: '', address }))
  try {
    await transport.sendMail({ from, to: addressed, messageId, ...mail, headers: AUTOMATIC })
  } catch (error) {
    throw failureOf(error)
  } finally {
    transport.close()
  }
}

type Letter = Mail & { _id: string; from: string; to: string[] }

/** Why a mail server does not do what it is asked. */
export function failureOf(error: unknown): Failure {
  const { responseCode = 0, code, command } = error as { responseCode?: number; code?: string; command?: string }
  // What is said of this recipient or this message is final; of us, it may be put right.
  const hopeless = responseCode >= 500 && /^(RCPT TO|DATA)$/.test(command ?? '')
  const reason = responseCode ? `answered ${responseCode}` : `could not be asked (${code ?? 'unknown'})`
  return new Failure(`The mail server ${reason}${command ? ` at ${command}` : ''}.`, { hopeless })
}

/** RFC 3834: no machine shall answer. */
const AUTOMATIC = { 'Auto-Submitted': 'auto-generated' }
