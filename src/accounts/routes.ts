import { Elysia, status, t } from 'elysia'
import { ProblemShape } from '../core/problem'
import { done, one } from '../core/shapes'
import { listing } from '../storage/lists'
import { bearerOf } from './actors'
import { guard } from './guard'
import * as profile from './profile'
import * as sessions from './sessions'
import {
  ApiToken,
  CookieRefreshed,
  IssuedApiToken,
  Me,
  NewApiToken,
  ProfileChange,
  Refresh,
  Refreshed,
  Session,
  SignedIn,
  SignIn,
  SignUp,
} from './shapes'
import * as signin from './signin'
import * as tokens from './tokens'

const listed = t.Object(listing)

const signing = new Elysia({ tags: ['accounts'] })
  .use(guard('accounts'))
  .post('/signin', ({ ctx, body, request, set }) => signin.signIn(ctx, body, { request, set }), {
    open: true,
    body: SignIn,
    response: { 200: SignedIn, 401: ProblemShape, 429: ProblemShape },
  })
  .post(
    '/signup',
    async ({ ctx, body, request, set }) => status(201, await signin.signUp(ctx, body, { request, set })),
    { open: true, body: SignUp, response: { 201: SignedIn, 409: ProblemShape } },
  )
  .post(
    '/token/refresh',
    ({ ctx, body, request, set }) => signin.refresh(ctx, body?.refreshToken || bearerOf(request), { request, set }),
    { open: true, body: Refresh, response: { 200: Refreshed, 401: ProblemShape } },
  )
  .post('/cookie/refresh', ({ ctx, request, set }) => signin.renew(ctx, { request, set }), {
    can: 'oneself',
    response: { 200: CookieRefreshed, 400: ProblemShape },
  })
  .post('/logout', ({ ctx, request, set }) => signin.signOut(ctx, { request, set }), { can: 'oneself', response: done })

const me = new Elysia({ prefix: '/me', tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/', ({ ctx }) => profile.get(ctx), { can: 'user', response: Me })
  .post('/', ({ ctx, body, request }) => profile.change(ctx, body, request), {
    can: 'user',
    body: ProfileChange,
    response: { 200: Me, 409: ProblemShape, 429: ProblemShape },
  })
  .get('/sessions', ({ ctx, query, request, set }) => sessions.list(ctx, query, { request, set }), {
    can: 'oneself',
    query: listed,
    response: t.Array(Session),
  })
  .delete('/sessions/:id', ({ ctx, params }) => sessions.remove(ctx, params.id), {
    can: 'oneself',
    params: one,
    response: { 200: done, 404: ProblemShape },
  })
  .get('/api-tokens', ({ ctx, query, request, set }) => tokens.list(ctx, query, { request, set }), {
    can: 'oneself',
    query: listed,
    response: t.Array(ApiToken),
  })
  .post(
    '/api-tokens',
    async ({ ctx, body, request, set }) => status(201, await tokens.create(ctx, body, { request, set })),
    {
      can: 'oneself',
      body: NewApiToken,
      response: { 201: IssuedApiToken, 404: ProblemShape, 409: ProblemShape, 429: ProblemShape },
    },
  )
  .delete('/api-tokens/:id', ({ ctx, params }) => tokens.remove(ctx, params.id), {
    can: 'oneself',
    params: one,
    response: { 200: done, 404: ProblemShape },
  })

export const accounts = new Elysia().use(signing).use(me)
