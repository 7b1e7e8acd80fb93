import { t } from 'elysia'
import { UpstreamUnreachable } from '../../core/http-client'
import { withOutboundCall } from '../../core/outbound-calls'
import { textMatching } from '../../core/shapes'
import { resolveAllowedAddresses } from '../../core/ssrf-guard'
import { createSmtpTransport, toSmtpError } from '../../platform/mail/smtp'
import { isPrivateNetworkAllowed } from '../url-policy'
import { defineKind, NotConnected, secretText } from './connection-kind'

const TURN_TIMEOUT_MS = 8_000 // ms to wait for a turn

const metadata = t.Object({
  host: textMatching('^[A-Za-z0-9._-]+$', 'Write the name or the address of a host, such as smtp.example.com.', {
    minLength: 1,
    maxLength: 253,
  }),
  port: t.Optional(t.Number({ multipleOf: 1, minimum: 1, maximum: 65_535, description: 'default: 587' })),
  secure: t.Optional(t.Boolean({ description: 'TLS from the start of the connection; default: true at port 465' })),
  user: t.Optional(t.String({ minLength: 1, maxLength: 500 })),
  from: t.Optional(
    textMatching('^[^\\r\\n]*[^\\s@<>]+@[^\\s@<>]+>?$', 'Write the sender as Name <name@example.com>.', {
      maxLength: 500,
      description: 'the sender: Name <address>; default: the user',
    }),
  ),
})

/** A mail server (RFC 5321). TLS is required unless private networks are allowed. */
export const email = defineKind({
  metadata,
  authentication: t.Object({ password: secretText }),
  serverOf: ({ host }) => String(host ?? '').toLowerCase(),
  check: ({ tenant, ...connection }) => withMailServer(tenant, connection.metadata, () => verifyTransport(connection)),
})

/** Calls a mail server when it is the turn of the tenant's call. @throws 503 BUSY */
export const withMailServer = <T>(tenant: string, { host, port = 587 }: MailServer, call: () => Promise<T>) =>
  withOutboundCall(tenant, `${host}:${port}`, AbortSignal.timeout(TURN_TIMEOUT_MS), call)

async function verifyTransport(connection: MailConnection): Promise<string> {
  const transport = await openTransport(connection)
  try {
    await transport.verify()
    return 'The mail server accepted the connection.'
  } catch (error) {
    throw new NotConnected(toSmtpError(error).message)
  } finally {
    transport.close()
  }
}

type MailServer = (typeof metadata)['static']
type MailConnection = { metadata: MailServer; authentication: { password?: string } }

/** Returns a transport to the address that passed the SSRF check, not to the name. @throws 502 OUTSIDE_UNREACHABLE */
export async function openTransport({
  metadata: { host, port = 587, secure = port === 465, user },
  authentication,
}: MailConnection) {
  const allowsPrivateNetwork = isPrivateNetworkAllowed()
  const [address] = await Promise.resolve()
    .then(() => resolveAllowedAddresses(new URL(`https://${host}`), { privateNetwork: allowsPrivateNetwork }))
    .catch((cause) => {
      throw new UpstreamUnreachable('refused', cause)
    })
  return createSmtpTransport({
    host: address,
    port,
    secure,
    requireTLS: !secure && !allowsPrivateNetwork,
    ...(user && { auth: { user, pass: authentication.password ?? '' } }),
    ...(address !== host && { tls: { servername: host } }),
  })
}
