import { Elysia, status, t } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { sendPage, sendSecret } from '../../core/response-headers'
import { IdParams, optionalBody, SuccessShape } from '../../core/shapes'
import { listQuery } from '../../storage/pagination'
import { guard } from '../guard'
import { sendSession } from '../session-headers'
import { Proof, SignedIn } from '../shapes'
import * as signin from './passkey-signin'
import * as passkeys from './passkeys'
import * as registration from './registration'
import {
  NewPasskey,
  Passkey,
  PasskeyName,
  PasskeyRegistrationOptions,
  PasskeySignIn,
  PasskeySignInOptions,
  PasskeySignInStart,
} from './shapes'

const errorResponses = { 400: ProblemShape, 409: ProblemShape }

const ownPasskeyRoutes = new Elysia({ prefix: '/me/passkeys', tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/', ({ ctx, query, request, set }) => sendPage({ request, set }, passkeys.list(ctx, query)), {
    can: 'oneself',
    query: t.Object(listQuery),
    response: t.Array(Passkey),
    detail: { operationId: 'listPasskeys', summary: 'List your passkeys' },
  })
  .post('/options', ({ ctx, body, request, set }) => sendSecret(set, registration.start(ctx, body, request)), {
    can: 'oneself',
    body: optionalBody(Proof),
    response: { 200: PasskeyRegistrationOptions, 409: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'startPasskeyRegistration',
      summary: 'Start the registration of a passkey',
      description:
        'Returns the options for creating a passkey. Requires a recent sign-in or another proof of identity.',
    },
  })
  .post('/', async ({ ctx, body }) => status(201, await registration.register(ctx, body)), {
    can: 'oneself',
    body: NewPasskey,
    response: { 201: Passkey, ...errorResponses },
    detail: {
      operationId: 'createPasskey',
      summary: 'Register a passkey',
      description: "Takes the browser's response to the options.",
    },
  })
  .put('/:id', ({ ctx, params, body }) => passkeys.rename(ctx, params.id, body.name), {
    can: 'oneself',
    params: IdParams,
    body: PasskeyName,
    response: { 200: Passkey, 404: ProblemShape },
    detail: { operationId: 'renamePasskey', summary: 'Rename a passkey' },
  })
  .delete('/:id', ({ ctx, params }) => passkeys.remove(ctx, params.id), {
    can: 'oneself',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape, 409: ProblemShape },
    detail: { operationId: 'deletePasskey', summary: 'Delete a passkey' },
  })

const passkeySignInRoutes = new Elysia({ prefix: '/signin/passkey', tags: ['accounts'] })
  .use(guard('accounts'))
  .post('/options', ({ ctx, body, request, set }) => sendSecret(set, signin.start(ctx, body?.challenge, request)), {
    openThrottled: true,
    body: optionalBody(PasskeySignInStart),
    response: { 200: PasskeySignInOptions, 401: ProblemShape, 403: ProblemShape, 404: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'startPasskeySignIn',
      summary: 'Start a sign-in with a passkey',
      description: 'Returns the options for requesting a passkey.',
    },
  })
  .post('/', ({ ctx, body, request, set }) => sendSession(set, signin.signIn(ctx, body, request)), {
    openThrottled: true,
    body: PasskeySignIn,
    response: { 200: SignedIn, 401: ProblemShape, 404: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'signInWithPasskey',
      summary: 'Sign in with a passkey',
      description: 'Responds like signIn. A passkey counts as both factors.',
    },
  })

const passkeyAdminRoutes = new Elysia({ tags: ['accounts'] })
  .use(guard('accounts'))
  .delete('/users/:id/passkeys', ({ ctx, params }) => passkeys.removeAllForUser(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape },
    detail: { operationId: 'deleteUserPasskeys', summary: 'Delete all passkeys of a user' },
  })

/** Routes of passkeys (WebAuthn). */
export const passkeyRoutes = [ownPasskeyRoutes, passkeySignInRoutes, passkeyAdminRoutes]
