import { Elysia, t } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { sendPage, sendSecret } from '../../core/response-headers'
import { IdParams, optionalBody, SuccessShape } from '../../core/shapes'
import { listQuery } from '../../storage/pagination'
import { guard, streamGuard } from '../guard'
import { sendCookies, sendSession, VERSION_HEADERS } from '../session-headers'
import { SignedIn } from '../shapes'
import * as flow from './flow'
import * as identities from './identities'
import { listProviders } from './provider-config'
import { Identity, NewIdentity, Redirect, RedirectToken, Start } from './shapes'

const params = t.Object({ provider: t.String() })
const describeRedirect = (operationId: string, summary: string) => ({
  response: { 400: ProblemShape, 429: ProblemShape, 502: ProblemShape },
  detail: {
    operationId,
    summary,
    responses: { 302: { description: 'Redirects to the provider, or back to the app' } },
  },
})

/** Returns a Response of its own, because several cookies may have to be set. */
async function sendRedirect(redirect: Promise<flow.Redirect>): Promise<Response> {
  const { location, cookies, isSignedIn } = await redirect
  const headers = new Headers({ location, 'cache-control': 'no-store', ...(isSignedIn && VERSION_HEADERS) })
  for (const cookie of cookies) headers.append('set-cookie', cookie)
  return new Response(null, { status: 302, headers })
}

const socialSignInRoutes = new Elysia({ prefix: '/auth', tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/providers', ({ ctx }) => listProviders(ctx), {
    open: true,
    response: t.Array(t.String()),
    detail: {
      operationId: 'listAuthProviders',
      summary: 'List the sign-in providers',
      description: 'Returns the names of the configured sign-in providers.',
    },
  })
  .get(
    '/:provider',
    ({ ctx, params, query, request }) => sendRedirect(flow.start(ctx, params.provider, query, request)),
    { open: true, params, query: Start, ...describeRedirect('startProviderSignIn', 'Start a sign-in with a provider') },
  )
  .get(
    '/:provider/callback',
    ({ ctx, params, request }) => sendRedirect(flow.callback(ctx, params.provider, request)),
    { open: true, params, ...describeRedirect('completeProviderSignIn', 'Return from a sign-in provider') },
  )
  .post(
    '/callback',
    ({ ctx, body, query, request, set }) =>
      sendSession(set, flow.exchangeRedirectToken(ctx, { ...query, ...body }, request)),
    {
      openThrottled: true,
      query: RedirectToken,
      body: optionalBody(RedirectToken),
      response: { 200: SignedIn, 401: ProblemShape },
      detail: {
        operationId: 'exchangeRedirectToken',
        summary: 'Exchange a redirect token for a session',
        description: 'Signs in with the token that was passed to the returnUrl.',
      },
    },
  )

const formCallbackRoutes = new Elysia({ prefix: '/auth', tags: ['accounts'] })
  .use(streamGuard('accounts'))
  .post('/:provider/callback', ({ params, request }) => flow.receiveCallbackForm(params.provider, request), {
    open: true,
    params,
    response: { 413: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'receiveProviderForm',
      summary: 'Return from a sign-in provider by form post',
      description: 'For providers that use form post, such as Apple.',
      responses: { 303: { description: 'Redirects to completeProviderSignIn' } },
    },
  })

const identityRoutes = new Elysia({ prefix: '/me/identities', tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, identities.list(ctx, query)), {
    can: 'oneself',
    query: t.Object(listQuery),
    response: t.Array(Identity),
    detail: { operationId: 'listIdentities', summary: 'List your linked identities' },
  })
  .post(
    '/',
    ({ ctx, body, request, set }) => sendCookies(set, sendSecret(set, flow.startLinking(ctx, body, request))),
    {
      can: 'oneself',
      body: NewIdentity,
      response: { 200: Redirect, 400: ProblemShape, 429: ProblemShape, 502: ProblemShape },
      detail: {
        operationId: 'startIdentityLink',
        summary: 'Start linking an identity',
        description:
          'Returns the URL of the provider. The provider redirects to the returnUrl (default: /) with ?linked=… or ?error=….',
      },
    },
  )
  .delete('/:id', ({ ctx, params }) => identities.remove(ctx, params.id), {
    can: 'oneself',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape, 409: ProblemShape },
    detail: { operationId: 'deleteIdentity', summary: 'Unlink an identity' },
  })

/** Routes of sign-ins with Google and other providers. */
export const socialRoutes = [socialSignInRoutes, formCallbackRoutes, identityRoutes]
