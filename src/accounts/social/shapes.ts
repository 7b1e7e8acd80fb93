import { type Static, t } from 'elysia'
import { id, time } from '../../core/shapes'
import { Proof, SignIn } from '../shapes'

export const Start = t.Object({
  returnUrl: t.Optional(t.String({ maxLength: 2_000, description: 'return URL, which receives ?rt=…' })),
  state: t.Optional(t.String({ maxLength: 500, description: 'passed back to the returnUrl' })),
})
export type Start = Static<typeof Start>

export const RedirectToken = t.Object({
  rt: t.Optional(t.String({ maxLength: 200 })),
  authType: SignIn.properties.authType,
})
export type RedirectToken = Static<typeof RedirectToken>

/** A link between a user and their account at a provider. */
export const Identity = t.Object({
  _id: id,
  provider: t.String(),
  email: t.Nullable(t.String({ description: 'as last reported by the provider' })),
  created: time,
  lastUsedAt: t.Nullable(time),
})

export const NewIdentity = t.Composite([t.Object({ provider: t.String({ maxLength: 100 }) }), Start, Proof])
export type NewIdentity = Static<typeof NewIdentity>
export const Redirect = t.Object({ url: t.String({ description: 'URL to open in this browser' }) })
