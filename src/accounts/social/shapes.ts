import { type Static, t } from 'elysia'
import { SignIn } from '../shapes'

export const Start = t.Object({
  returnUrl: t.Optional(t.String({ maxLength: 2_000, description: 'where to go then, with ?rt=…' })),
  state: t.Optional(t.String({ maxLength: 500, description: 'comes back with it' })),
})
export type Start = Static<typeof Start>

export const RedirectToken = t.Object({
  rt: t.Optional(t.String({ maxLength: 200 })),
  authType: SignIn.properties.authType,
})
export type RedirectToken = Static<typeof RedirectToken>
