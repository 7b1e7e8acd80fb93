import { Elysia, status, t } from 'elysia'
import { ProblemShape } from '../core/problem'
import { sendPage, sendSecret } from '../core/response-headers'
import { IdParams, SuccessShape } from '../core/shapes'
import { listQuery } from '../storage/pagination'
import { readBearerToken } from './actors'
import * as tokens from './api-tokens'
import { guard } from './guard'
import * as profile from './profile'
import { sendCookies, sendSession } from './session-headers'
import * as sessions from './sessions'
import {
  ApiToken,
  IssuedApiToken,
  Me,
  NewApiToken,
  ProfileChange,
  RefreshedCookie,
  RefreshedTokens,
  RefreshRequest,
  Session,
  SignedIn,
  SignIn,
  SignUp,
} from './shapes'
import * as signin from './signin'

const pageQuery = t.Object(listQuery)

const signInRoutes = new Elysia({ tags: ['accounts'] })
  .use(guard('accounts'))
  .post('/signin', ({ ctx, body, request, set }) => sendSession(set, signin.signIn(ctx, body, request)), {
    openThrottled: true,
    body: SignIn,
    response: { 200: SignedIn, 401: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'signIn',
      summary: 'Sign in',
      description:
        'Sets a session cookie, or returns tokens if `authType` is `oauth`. With a second factor, the first response is 401 SECOND_FACTOR_REQUIRED; then send `challenge` and `code`.',
    },
  })
  .post(
    '/signup',
    async ({ ctx, body, request, set }) => status(201, await sendSession(set, signin.signUp(ctx, body, request))),
    {
      openThrottled: true,
      body: SignUp,
      response: { 201: SignedIn, 409: ProblemShape, 429: ProblemShape },
      detail: { operationId: 'signUp', summary: 'Sign up', description: 'Creates a user and signs in like signIn.' },
    },
  )
  .post(
    '/token/refresh',
    ({ ctx, body, request, set }) =>
      sendSession(set, signin.refresh(ctx, body?.refreshToken || readBearerToken(request))),
    {
      openThrottled: true,
      body: RefreshRequest,
      response: { 200: RefreshedTokens, 401: ProblemShape },
      detail: {
        operationId: 'refreshToken',
        summary: 'Exchange a refresh token for new tokens',
        description: 'Send the refresh token in the body or as the bearer token. Each refresh token can be used once.',
      },
    },
  )
  .post('/cookie/refresh', ({ ctx, request, set }) => sendSession(set, signin.renewCookie(ctx, request)), {
    can: 'oneself',
    response: { 200: RefreshedCookie, 400: ProblemShape },
    detail: { operationId: 'refreshCookie', summary: 'Renew the session cookie' },
  })
  .post('/logout', ({ ctx, request, set }) => sendCookies(set, signin.signOut(ctx, request)), {
    can: 'oneself',
    response: SuccessShape,
    detail: {
      operationId: 'signOut',
      summary: 'Sign out',
      description: 'Ends the session of the cookie or of the token.',
    },
  })

const meRoutes = new Elysia({ prefix: '/me', tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/', ({ ctx }) => profile.get(ctx), {
    can: 'user',
    response: Me,
    detail: { operationId: 'getMe', summary: 'Get your own profile' },
  })
  .post('/', ({ ctx, body, request }) => profile.change(ctx, body, request), {
    can: 'user',
    changesData: true,
    body: ProfileChange,
    response: { 200: Me, 409: ProblemShape, 429: ProblemShape },
    detail: { operationId: 'updateMe', summary: 'Update your own profile' },
  })
  .get('/sessions', ({ ctx, query, request, set }) => sendPage({ request, set }, sessions.list(ctx, query)), {
    can: 'oneself',
    query: pageQuery,
    response: t.Array(Session),
    detail: { operationId: 'listSessions', summary: 'List your sessions' },
  })
  .delete('/sessions/:id', ({ ctx, params }) => sessions.remove(ctx, params.id), {
    can: 'oneself',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape },
    detail: { operationId: 'endSession', summary: 'End one of your sessions' },
  })
  .get('/api-tokens', ({ ctx, query, request, set }) => sendPage({ request, set }, tokens.list(ctx, query)), {
    can: 'oneself',
    query: pageQuery,
    response: t.Array(ApiToken),
    detail: { operationId: 'listApiTokens', summary: 'List your API tokens' },
  })
  .post(
    '/api-tokens',
    async ({ ctx, body, request, set }) => status(201, await sendSecret(set, tokens.create(ctx, body, request))),
    {
      can: 'oneself',
      body: NewApiToken,
      response: { 201: IssuedApiToken, 404: ProblemShape, 409: ProblemShape, 429: ProblemShape },
      detail: {
        operationId: 'createApiToken',
        summary: 'Create an API token',
        description: 'The token is returned only once.',
      },
    },
  )
  .delete('/api-tokens/:id', ({ ctx, params }) => tokens.remove(ctx, params.id), {
    can: 'oneself',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape },
    detail: { operationId: 'deleteApiToken', summary: 'Delete an API token' },
  })

/** Routes of sign-in and sign-up, and of the caller's own profile, sessions and API tokens. */
export const accountRoutes = [signInRoutes, meRoutes]
