import { type Static, t } from 'elysia'
import { SignUp } from '../shapes'

export const RequestedEmailSignIn = t.Object({
  request: t.String({ description: 'send with the code; only this device can use the code' }),
})

const { authType } = SignUp.properties

export const EmailCode = t.Object({
  request: t.String({ minLength: 1, maxLength: 200, description: 'as returned when the mail was requested' }),
  code: t.String({ minLength: 1, maxLength: 100, description: 'eight-digit code from the mail' }),
  authType,
})
export type EmailCode = Static<typeof EmailCode>

export const EmailLink = t.Object({
  token: t.String({ minLength: 1, maxLength: 200, description: 'token from the link' }),
  authType,
})
export type EmailLink = Static<typeof EmailLink>

export const SignInMethods = t.Object({
  email: t.Boolean({ description: 'whether a mail with a code and a link can be requested' }),
  providers: t.Array(t.String({ description: 'name of a sign-in provider' })),
})
