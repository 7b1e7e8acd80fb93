import type { Static, TObject } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { t } from 'elysia'
import { textMatching, webAddress } from '../../core/shapes'

/** The tenant of a connection, and its settings and secrets. */
type ConnectionValues<Metadata = unknown, Authentication = unknown> = {
  tenant: string
  metadata: Metadata
  authentication: Authentication
}

/** A kind of server: its settings, its secrets, and a check of the connection. */
type ConnectionKind<Metadata extends TObject, Authentication extends TObject, Values = ConnectionValues> = {
  metadata: Metadata
  /** No secret is required: a connection may be created before they are known. `check` reports missing ones. */
  authentication: Authentication
  /** Returns the server that the secrets are sent to, such as its origin. */
  serverOf(metadata: Record<string, unknown>): string
  /** Makes a small call without side effects. Returns a sentence. @throws NotConnected, 502 OUTSIDE_UNREACHABLE, 503 */
  check(values: Values): Promise<string>
}

/** Returns a kind whose check takes the values of any connection, and passes on only those that have its shapes. */
export const defineKind = <Metadata extends TObject, Authentication extends TObject>({
  check,
  ...shapes
}: ConnectionKind<
  Metadata,
  Authentication,
  ConnectionValues<Static<Metadata>, Static<Authentication>>
>): ConnectionKind<Metadata, Authentication> => ({
  ...shapes,
  async check({ tenant, metadata, authentication }) {
    if (Value.Check(shapes.metadata, metadata) && Value.Check(shapes.authentication, authentication))
      return check({ tenant, metadata, authentication })
    throw new NotConnected('The settings of this connection are not valid for its kind.')
  },
})

/** The server did not accept the connection. The message is a sentence without secrets. */
export class NotConnected extends Error {}

/** Returns the value. @throws NotConnected when it is missing or empty */
export const requireValue = <Value>(value: Value | undefined, path: string): Value => {
  if (value === undefined || value === '') throw new NotConnected(`${path} is missing.`)
  return value
}

const maybe = t.Optional
export const secretText = maybe(t.String({ minLength: 1, maxLength: 8_000 }))

/** A secret that is sent in a header. */
export const keyText = maybe(
  textMatching(
    '^[\\x20-\\x7e]*$',
    'Write the key in ASCII, in one line. A key that was masked when it was copied has to be copied again.',
    { minLength: 1, maxLength: 8_000 },
  ),
)

/** Returns the origin of a URL that may be missing. */
export const originOf = (url: unknown, fallback = ''): string => {
  const address = typeof url === 'string' && url ? url : fallback
  return URL.parse(address)?.origin ?? address
}
export const optionalUrl = (description: string) => maybe(webAddress({ maxLength: 2_000, description }))
export const environment = maybe(t.Union([t.Literal('live'), t.Literal('sandbox')], { description: 'default: live' }))

/** Two secrets are valid during a rotation. */
export const webhookSecret = maybe(
  t.Union([
    t.String({ minLength: 1, maxLength: 1_000 }),
    t.Array(t.String({ minLength: 1, maxLength: 1_000 }), { minItems: 1, maxItems: 2 }),
  ]),
)
