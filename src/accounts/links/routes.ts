import { Elysia, status } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { guard } from '../guard'
import { sendSession } from '../session-headers'
import { SignedIn } from '../shapes'
import { completeSetup } from './setup-link'
import { LinkSignIn, SetUp } from './shapes'
import { signInByLink } from './signin-link'

/** Routes for the links that the server prints: one creates the first administrator, the other signs in. */
export const linkRoutes = new Elysia({ tags: ['accounts'] })
  .use(guard('accounts'))
  .post(
    '/setup',
    async ({ ctx, body, request, set }) => status(201, await sendSession(set, completeSetup(ctx, body, request))),
    {
      openThrottled: true,
      body: SetUp,
      response: { 201: SignedIn, 400: ProblemShape, 409: ProblemShape },
      detail: {
        operationId: 'setUp',
        summary: 'Create the first administrator',
        description:
          'Takes the token from the set-up link, which the server prints while a tenant has no administrator. Signs in like signUp.',
      },
    },
  )
  .post('/signin/link', ({ ctx, body, request, set }) => sendSession(set, signInByLink(ctx, body, request)), {
    openThrottled: true,
    body: LinkSignIn,
    response: { 200: SignedIn, 400: ProblemShape },
    detail: {
      operationId: 'signInByLink',
      summary: 'Sign in with a link',
      description: 'Takes the token from a sign-in link of the command line. Each token can be used once.',
    },
  })
