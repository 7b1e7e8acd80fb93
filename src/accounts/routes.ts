import { Elysia, status, t } from 'elysia'
import { ProblemShape } from '../core/problem'
import { done, one } from '../core/shapes'
import { listing } from '../storage/lists'
import { bearerOf } from './actors'
import { guard } from './guard'
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
import * as users from './users'

const listed = t.Object(listing)

const signing = new Elysia({ tags: ['accounts'] })
  .use(guard('accounts'))
  .post('/signin', ({ ctx, body, request, set }) => signin.signIn(ctx, body, { request, set }), {
    open: true,
    body: SignIn,
    response: { 200: SignedIn, 401: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'signIn',
      summary: 'Sign in',
      description:
        'Sets a session cookie, or answers with tokens if `authType` is `oauth`. With a second factor the first answer is 401 SECOND_FACTOR_REQUIRED, and `challenge` and `code` are sent next.',
    },
  })
  .post(
    '/signup',
    async ({ ctx, body, request, set }) => status(201, await signin.signUp(ctx, body, { request, set })),
    {
      open: true,
      body: SignUp,
      response: { 201: SignedIn, 409: ProblemShape, 429: ProblemShape },
      detail: {
        operationId: 'signUp',
        summary: 'Sign up',
        description: 'Creates a user, and signs in as signIn does.',
      },
    },
  )
  .post(
    '/token/refresh',
    ({ ctx, body, request, set }) => signin.refresh(ctx, body?.refreshToken || bearerOf(request), { request, set }),
    {
      open: true,
      body: Refresh,
      response: { 200: Refreshed, 401: ProblemShape },
      detail: {
        operationId: 'refreshToken',
        summary: 'Exchange a refresh token for new tokens',
        description: 'The refresh token is sent in the body, or as the bearer token. Each one can be used once.',
      },
    },
  )
  .post('/cookie/refresh', ({ ctx, request, set }) => signin.renew(ctx, { request, set }), {
    can: 'oneself',
    response: { 200: CookieRefreshed, 400: ProblemShape },
    detail: { operationId: 'refreshCookie', summary: 'Renew the session cookie' },
  })
  .post('/logout', ({ ctx, request, set }) => signin.signOut(ctx, { request, set }), {
    can: 'oneself',
    response: done,
    detail: {
      operationId: 'signOut',
      summary: 'Sign out',
      description: 'Ends the session of the cookie or of the token.',
    },
  })

const me = new Elysia({ prefix: '/me', tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/', ({ ctx }) => users.me(ctx), {
    can: 'user',
    response: Me,
    detail: { operationId: 'getMe', summary: 'Get your own profile' },
  })
  .post('/', ({ ctx, body }) => users.changeProfile(ctx, body), {
    can: 'user',
    body: ProfileChange,
    response: { 200: Me, 409: ProblemShape },
    detail: { operationId: 'updateMe', summary: 'Update your own profile' },
  })
  .get('/sessions', ({ ctx, query, request, set }) => sessions.list(ctx, query, { request, set }), {
    can: 'oneself',
    query: listed,
    response: t.Array(Session),
    detail: { operationId: 'listSessions', summary: 'List your sessions' },
  })
  .delete('/sessions/:id', ({ ctx, params }) => sessions.remove(ctx, params.id), {
    can: 'oneself',
    params: one,
    response: { 200: done, 404: ProblemShape },
    detail: { operationId: 'endSession', summary: 'End one of your sessions' },
  })
  .get('/api-tokens', ({ ctx, query, request, set }) => tokens.list(ctx, query, { request, set }), {
    can: 'oneself',
    query: listed,
    response: t.Array(ApiToken),
    detail: { operationId: 'listApiTokens', summary: 'List your API tokens' },
  })
  .post(
    '/api-tokens',
    async ({ ctx, body, request, set }) => status(201, await tokens.create(ctx, body, { request, set })),
    {
      can: 'oneself',
      body: NewApiToken,
      response: { 201: IssuedApiToken, 409: ProblemShape },
      detail: {
        operationId: 'createApiToken',
        summary: 'Create an API token',
        description: 'The token is shown in this answer only.',
      },
    },
  )
  .delete('/api-tokens/:id', ({ ctx, params }) => tokens.remove(ctx, params.id), {
    can: 'oneself',
    params: one,
    response: { 200: done, 404: ProblemShape },
    detail: { operationId: 'deleteApiToken', summary: 'Delete an API token' },
  })

export const accounts = new Elysia().use(signing).use(me)
