import { Elysia, status, t } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { done, one, orNothing } from '../../core/shapes'
import { listing } from '../../storage/lists'
import { guard } from '../guard'
import { Proof } from '../proof'
import { SignedIn } from '../shapes'
import * as passkeys from './passkeys'
import * as registration from './registration'
import {
  NewPasskey,
  Passkey,
  PasskeyName,
  PasskeySignIn,
  RegistrationOptions,
  SignInOptions,
  SignInStart,
} from './shapes'
import * as signin from './signin'

const refused = { 400: ProblemShape, 409: ProblemShape }

const own = new Elysia({ prefix: '/me/passkeys', tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/', ({ ctx, query, request, set }) => passkeys.list(ctx, query, { request, set }), {
    can: 'oneself',
    query: t.Object(listing),
    response: t.Array(Passkey),
    detail: { operationId: 'listPasskeys', summary: 'List your passkeys' },
  })
  .post('/options', ({ ctx, body, request, set }) => registration.start(ctx, body, { request, set }), {
    can: 'oneself',
    body: orNothing(Proof),
    response: { 200: RegistrationOptions, 409: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'startPasskeyRegistration',
      summary: 'Start the registration of a passkey',
      description: 'What a browser needs to make a passkey, for who has signed in of late or proves who they are.',
    },
  })
  .post('/', async ({ ctx, body }) => status(201, await registration.register(ctx, body)), {
    can: 'oneself',
    body: NewPasskey,
    response: { 201: Passkey, ...refused },
    detail: {
      operationId: 'createPasskey',
      summary: 'Register a passkey',
      description: 'Takes what the browser answered to the options.',
    },
  })
  .put('/:id', ({ ctx, params, body }) => passkeys.rename(ctx, params.id, body.name), {
    can: 'oneself',
    params: one,
    body: PasskeyName,
    response: { 200: Passkey, 404: ProblemShape },
    detail: { operationId: 'renamePasskey', summary: 'Rename a passkey' },
  })
  .delete('/:id', ({ ctx, params }) => passkeys.remove(ctx, params.id), {
    can: 'oneself',
    params: one,
    response: { 200: done, 404: ProblemShape, 409: ProblemShape },
    detail: { operationId: 'deletePasskey', summary: 'Delete a passkey' },
  })

const signing = new Elysia({ prefix: '/signin/passkey', tags: ['accounts'] })
  .use(guard('accounts'))
  .post('/options', ({ ctx, body, request, set }) => signin.start(ctx, body?.challenge, { request, set }), {
    open: true,
    body: orNothing(SignInStart),
    response: { 200: SignInOptions, 401: ProblemShape, 403: ProblemShape, 404: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'startPasskeySignIn',
      summary: 'Start a sign-in with a passkey',
      description: 'What a browser needs to ask for a passkey.',
    },
  })
  .post('/', ({ ctx, body, request, set }) => signin.signIn(ctx, body, { request, set }), {
    open: true,
    body: PasskeySignIn,
    response: { 200: SignedIn, 401: ProblemShape, 404: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'signInWithPasskey',
      summary: 'Sign in with a passkey',
      description: 'Answers as a sign-in by password does. A passkey counts as both factors.',
    },
  })

const lost = new Elysia({ tags: ['accounts'] })
  .use(guard('accounts'))
  .delete('/users/:id/passkeys', ({ ctx, params }) => passkeys.removeAllOf(ctx, params.id), {
    can: 'privileged',
    params: one,
    response: { 200: done, 404: ProblemShape },
    detail: { operationId: 'deleteUserPasskeys', summary: 'Delete all passkeys of a user' },
  })

/** Signing in by what a device keeps (WebAuthn). */
export const passkeyRoutes = new Elysia().use(own).use(signing).use(lost)
