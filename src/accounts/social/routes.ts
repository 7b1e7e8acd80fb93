import { Elysia, t } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { done, one, orNothing } from '../../core/shapes'
import { listing } from '../../storage/lists'
import { guard } from '../guard'
import { SignedIn } from '../shapes'
import * as flow from './flow'
import * as identities from './identities'
import { list } from './setup'
import { Departure, Identity, NewIdentity, RedirectToken, Start } from './shapes'

const params = t.Object({ provider: t.String() })
const redirect = (operationId: string, summary: string) => ({
  response: { 400: ProblemShape, 429: ProblemShape, 502: ProblemShape },
  detail: {
    operationId,
    summary,
    responses: { 302: { description: 'Redirects to the provider, or back to the app' } },
  },
})

const signing = new Elysia({ prefix: '/auth', tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/providers', ({ ctx }) => list(ctx), {
    open: true,
    response: t.Array(t.String()),
    detail: {
      operationId: 'listAuthProviders',
      summary: 'List the sign-in providers',
      description: 'The names of those by whom users may sign in.',
    },
  })
  .get(
    '/:provider',
    ({ ctx, params, query, request, set }) => flow.start(ctx, params.provider, query, { request, set }),
    { open: true, params, query: Start, ...redirect('startProviderSignIn', 'Start a sign-in with a provider') },
  )
  .get(
    '/:provider/callback',
    ({ ctx, params, request, set }) => flow.callback(ctx, params.provider, { request, set }),
    { open: true, params, ...redirect('completeProviderSignIn', 'Return from a sign-in provider') },
  )
  .post(
    '/callback',
    ({ ctx, body, query, request, set }) => flow.exchange(ctx, { ...query, ...body }, { request, set }),
    {
      open: true,
      query: RedirectToken,
      body: orNothing(RedirectToken),
      response: { 200: SignedIn, 401: ProblemShape },
      detail: {
        operationId: 'exchangeRedirectToken',
        summary: 'Exchange a redirect token for a session',
        description: 'Signs in by the token that came with a returnUrl.',
      },
    },
  )

const own = new Elysia({ prefix: '/me/identities', tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/', ({ ctx, query, request, set }) => identities.list(ctx, query, { request, set }), {
    can: 'oneself',
    query: t.Object(listing),
    response: t.Array(Identity),
    detail: { operationId: 'listIdentities', summary: 'List your linked identities' },
  })
  .post('/', ({ ctx, body, request, set }) => flow.startLinking(ctx, body, { request, set }), {
    can: 'oneself',
    body: NewIdentity,
    response: { 200: Departure, 400: ProblemShape, 429: ProblemShape, 502: ProblemShape },
    detail: {
      operationId: 'startIdentityLink',
      summary: 'Start linking an identity',
      description: 'Leads to a provider, and comes back with ?linked=… or ?error=… to a returnUrl, else to /.',
    },
  })
  .delete('/:id', ({ ctx, params }) => identities.remove(ctx, params.id), {
    can: 'oneself',
    params: one,
    response: { 200: done, 404: ProblemShape, 409: ProblemShape },
    detail: { operationId: 'deleteIdentity', summary: 'Unlink an identity' },
  })

/** Signing in by Google and others. */
export const socialRoutes = new Elysia().use(signing).use(own)
