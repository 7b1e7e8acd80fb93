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
      summary: 'Get the ways to sign in',
      description: 'Whether users sign in by mail, and the names of the providers. Passwords and passkeys always work.',
    },
  })
  .post('/email', ({ ctx, body, request, set }) => sendSecret(set, requestEmailSignIn(ctx, body.email, request)), {
    openThrottled: true,
    body: ForgottenPassword,
    response: { 200: RequestedEmailSignIn, 403: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'requestEmailSignIn',
      summary: 'Request a mail to sign in',
      description:
        'The mail has a code and a link, valid for 15 minutes. The answer is the same whether a user has the address or not.',
    },
  })
  .post('/email/code', ({ ctx, body, request, set }) => sendSession(set, signInByEmailCode(ctx, body, request)), {
    openThrottled: true,
    body: EmailCode,
    response: { 200: SignedIn, ...refusals },
    detail: {
      operationId: 'signInByEmailCode',
      summary: 'Sign in by the code of a mail',
      description:
        'Takes the code with the `request` of the device that asked for it, five times at most. It signs up an address that no user has, if the tenant allows it.',
    },
  })
  .post('/email/link', ({ ctx, body, request, set }) => sendSession(set, signInByEmailLink(ctx, body, request)), {
    openThrottled: true,
    body: EmailLink,
    response: { 200: SignedIn, 400: ProblemShape, ...refusals },
    detail: {
      operationId: 'signInByEmailLink',
      summary: 'Sign in by the link of a mail',
      description:
        'Takes the token of the link, once, on any device. The page of the link sends it when a person asks.',
    },
  })
