import { t } from 'elysia'
import { failureOf, transportTo } from '../../../accounts/mail/transport'
import { addressesOf } from '../../../core/addresses'
import { withOutgoingCall } from '../../../core/outgoing-calls'
import { Unreachable } from '../../../core/outside'
import { textMatching } from '../../../core/shapes'
import { privateNetwork } from '../../addresses'
import { kind, NotConnected, secretText } from './kind'

const TIMEOUT = 8_000 // ms to wait for a turn

const metadata = t.Object({
  host: textMatching('^[A-Za-z0-9._-]+$', 'Write the name or the address of a host, such as smtp.example.com.', {
    minLength: 1,
    maxLength: 253,
  }),
  port: t.Optional(t.Number({ multipleOf: 1, minimum: 1, maximum: 65_535, description: '587 unless told' })),
  secure: t.Optional(t.Boolean({ description: 'TLS from the beginning; so it is at port 465 unless told' })),
  user: t.Optional(t.String({ minLength: 1, maxLength: 500 })),
  from: t.Optional(
    textMatching('^[^\\r\\n]*[^\\s@<>]+@[^\\s@<>]+>?$', 'Write the sender as Name <name@example.com>.', {
      maxLength: 500,
      description: 'the sender: Name <address>; the user unless told',
    }),
  ),
})

/** A server that takes mail (RFC 5321). Beyond one's own network it is only spoken to encrypted. */
export const email = kind({
  metadata,
  authentication: t.Object({ password: secretText }),
  async check({ tenant, ...of }) {
    const { host, port = 587 } = of.metadata
    return withOutgoingCall(tenant, `${host}:${port}`, AbortSignal.timeout(TIMEOUT), () => verified(of))
  },
})

async function verified(of: Of): Promise<string> {
  const transport = await transportOf(of)
  try {
    await transport.verify()
    return 'It lets us in.'
  } catch (error) {
    throw new NotConnected(failureOf(error).message)
  } finally {
    transport.close()
  }
}

type Of = { metadata: (typeof metadata)['static']; authentication: { password?: string } }

/** A way to such a server: to the very address that was looked at. @throws 502 OUTSIDE_UNREACHABLE */
export async function transportOf({ metadata: { host, port = 587, secure = port === 465, user }, authentication }: Of) {
  const neighbours = privateNetwork()
  const [address] = await Promise.resolve()
    .then(() => addressesOf(new URL(`https://${host}`), { privateNetwork: neighbours }))
    .catch((cause) => {
      throw new Unreachable('refused', cause)
    })
  return transportTo({
    host: address,
    port,
    secure,
    requireTLS: !secure && !neighbours,
    ...(user && { auth: { user, pass: authentication.password ?? '' } }),
    ...(address !== host && { tls: { servername: host } }),
  })
}
