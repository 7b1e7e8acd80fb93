import { Elysia } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { sendSecret } from '../../core/response-headers'
import { guard } from '../guard'
import { ForgottenPassword } from '../mail/shapes'
import { sendSession } from '../session-headers'
import { SignedIn } from '../shapes'
import { signInByEmailCode, signInByEmailLink } from './redemption'
import { getSignInMethods, requestEmailSignIn } from './request'
import { EmailCode, EmailLink, RequestedEmailSignIn, SignInMethods } from './shapes'

const refusals = { 401: ProblemShape, 403: ProblemShape, 429: ProblemShape }

/** Routes of sign-ins by a mail with a code and a link. */
export const emailSignInRoutes = new Elysia({ prefix: '/signin', tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/methods', ({ ctx }) => getSignInMethods(ctx), {
    open: true,
    response: SignInMethods,
    detail: {
      operationId: 'getSignInMethods',
      summary: 'Get the sign-in methods',
      description:
        'Returns whether e-mail sign-in is available, and the names of the providers. Passwords and passkeys are always available.',
    },
  })
  .post('/email', ({ ctx, body, request, set }) => sendSecret(set, requestEmailSignIn(ctx, body.email, request)), {
    openThrottled: true,
    body: ForgottenPassword,
    response: { 200: RequestedEmailSignIn, 403: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'requestEmailSignIn',
      summary: 'Request a sign-in mail',
      description:
        'The mail contains a code and a link, valid for 15 minutes. The response is the same whether or not a user has the address.',
    },
  })
  .post('/email/code', ({ ctx, body, request, set }) => sendSession(set, signInByEmailCode(ctx, body, request)), {
    openThrottled: true,
    body: EmailCode,
    response: { 200: SignedIn, ...refusals },
    detail: {
      operationId: 'signInByEmailCode',
      summary: 'Sign in with a mailed code',
      description:
        'Takes the code and the `request` of the device that requested the mail; at most five attempts. Signs up new addresses if the tenant allows it.',
    },
  })
  .post('/email/link', ({ ctx, body, request, set }) => sendSession(set, signInByEmailLink(ctx, body, request)), {
    openThrottled: true,
    body: EmailLink,
    response: { 200: SignedIn, 400: ProblemShape, ...refusals },
    detail: {
      operationId: 'signInByEmailLink',
      summary: 'Sign in with a mailed link',
      description:
        'Takes the token from the link, once, on any device. The linked page sends the token after the person confirms.',
    },
  })
