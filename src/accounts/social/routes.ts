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
const leads = (description: string) => ({
  response: { 400: ProblemShape, 429: ProblemShape, 502: ProblemShape },
  detail: { description, responses: { 302: { description: 'where to go' } } },
})

const signing = new Elysia({ prefix: '/auth', tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/providers', ({ ctx }) => list(ctx), {
    open: true,
    response: t.Array(t.String()),
    detail: { description: 'The names of those by whom users may sign in.' },
  })
  .get(
    '/:provider',
    ({ ctx, params, query, request, set }) => flow.start(ctx, params.provider, query, { request, set }),
    { open: true, params, query: Start, ...leads('Leads to the provider.') },
  )
  .get(
    '/:provider/callback',
    ({ ctx, params, request, set }) => flow.callback(ctx, params.provider, { request, set }),
    { open: true, params, ...leads('Where the provider leads back to.') },
  )
  .post(
    '/callback',
    ({ ctx, body, query, request, set }) => flow.exchange(ctx, { ...query, ...body }, { request, set }),
    {
      open: true,
      query: RedirectToken,
      body: orNothing(RedirectToken),
      response: { 200: SignedIn, 401: ProblemShape },
      detail: { description: 'Signs in by the token that came with a returnUrl.' },
    },
  )

const own = new Elysia({ prefix: '/me/identities', tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/', ({ ctx, query, request, set }) => identities.list(ctx, query, { request, set }), {
    can: 'oneself',
    query: t.Object(listing),
    response: t.Array(Identity),
  })
  .post('/', ({ ctx, body, request, set }) => flow.startLinking(ctx, body, { request, set }), {
    can: 'oneself',
    body: NewIdentity,
    response: { 200: Departure, 400: ProblemShape, 429: ProblemShape, 502: ProblemShape },
    detail: {
      description: 'Leads to a provider, and comes back with ?linked=… or ?error=… to a returnUrl, else to /.',
    },
  })
  .delete('/:id', ({ ctx, params }) => identities.remove(ctx, params.id), {
    can: 'oneself',
    params: one,
    response: { 200: done, 404: ProblemShape, 409: ProblemShape },
  })

/** Signing in by Google and others. */
export const socialRoutes = new Elysia().use(signing).use(own)
