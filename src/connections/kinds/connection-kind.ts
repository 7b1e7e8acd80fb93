import type { Static, TObject } from '@sinclair/typebox'
import { t } from 'elysia'
import { webAddress } from '../../core/shapes'

/** A kind of server: its settings, its secrets, and a check of the connection. */
export type ConnectionKind<Metadata extends TObject, Authentication extends TObject> = {
  metadata: Metadata
  /** No secret is required: a connection may be created before they are known. `check` reports missing ones. */
  authentication: Authentication
  /** Makes a small call without side effects. Returns a sentence. @throws NotConnected, 502 OUTSIDE_UNREACHABLE, 503 */
  check(of: { tenant: string; metadata: Static<Metadata>; authentication: Static<Authentication> }): Promise<string>
}

export const defineKind = <Metadata extends TObject, Authentication extends TObject>(
  definition: ConnectionKind<Metadata, Authentication>,
) => definition

/** The server did not accept the connection. The message is a sentence without secrets. */
export class NotConnected extends Error {}

/** Returns the value. @throws NotConnected when it is missing or empty */
export const requireValue = <Value>(value: Value | undefined, path: string): Value => {
  if (value === undefined || value === '') throw new NotConnected(`${path} is missing.`)
  return value
}

const maybe = t.Optional
export const secretText = maybe(t.String({ minLength: 1, maxLength: 8_000 }))
export const optionalUrl = (description: string) => maybe(webAddress({ maxLength: 2_000, description }))
export const environment = maybe(t.Union([t.Literal('live'), t.Literal('sandbox')], { description: 'default: live' }))

/** Two secrets are valid during a rotation. */
export const webhookSecret = maybe(
  t.Union([
    t.String({ minLength: 1, maxLength: 1_000 }),
    t.Array(t.String({ minLength: 1, maxLength: 1_000 }), { minItems: 1, maxItems: 2 }),
  ]),
)
