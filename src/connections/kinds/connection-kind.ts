import type { Static, TObject } from '@sinclair/typebox'
import { t } from 'elysia'
import { webAddress } from '../../core/shapes'

/** A kind of server: what is known of one, what of that is secret, and how to find out whether it takes us. */
export type ConnectionKind<Metadata extends TObject, Authentication extends TObject> = {
  metadata: Metadata
  /** None is required: a connection may be made before its secrets are known, and `check` tells what is missing. */
  authentication: Authentication
  /** A small call, which changes nothing. Answers in a sentence. @throws NotConnected, 502 OUTSIDE_UNREACHABLE, 503 */
  check(of: { tenant: string; metadata: Static<Metadata>; authentication: Static<Authentication> }): Promise<string>
}

export const defineKind = <Metadata extends TObject, Authentication extends TObject>(
  definition: ConnectionKind<Metadata, Authentication>,
) => definition

/** Why a server does not take us: a sentence without secrets. */
export class NotConnected extends Error {}

/** @throws NotConnected */
export const requireValue = <Value>(value: Value | undefined, path: string): Value => {
  if (value === undefined || value === '') throw new NotConnected(`${path} is missing.`)
  return value
}

const maybe = t.Optional
export const secretText = maybe(t.String({ minLength: 1, maxLength: 8_000 }))
export const optionalUrl = (description: string) => maybe(webAddress({ maxLength: 2_000, description }))
export const environment = maybe(t.Union([t.Literal('live'), t.Literal('sandbox')], { description: 'default: live' }))

/** Two while one takes the place of the other. */
export const webhookSecret = maybe(
  t.Union([
    t.String({ minLength: 1, maxLength: 1_000 }),
    t.Array(t.String({ minLength: 1, maxLength: 1_000 }), { minItems: 1, maxItems: 2 }),
  ]),
)
