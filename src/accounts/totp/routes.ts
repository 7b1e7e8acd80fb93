import { Elysia } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { done, one } from '../../core/shapes'
import { guard } from '../guard'
import { Code, NewSecondFactor, RecoveryCodes, SecondFactor } from './shapes'
import * as totp from './totp'

const refused = { 404: ProblemShape, 409: ProblemShape, 429: ProblemShape }

/** The second factor of a sign-in: codes of an authenticator app. */
export const totpRoutes = new Elysia({ tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/me/totp', ({ ctx }) => totp.get(ctx), {
    can: 'oneself',
    response: SecondFactor,
    detail: { operationId: 'getTotp', summary: 'Get the state of your second factor' },
  })
  .post('/me/totp', ({ ctx, request, set }) => totp.start(ctx, { request, set }), {
    can: 'oneself',
    response: { 200: NewSecondFactor, 409: ProblemShape },
    detail: {
      operationId: 'startTotp',
      summary: 'Start setting up a second factor',
      description: 'Answers with the secret for an authenticator app. The second factor counts after `confirmTotp`.',
    },
  })
  .post('/me/totp/confirm', ({ ctx, body, request, set }) => totp.confirm(ctx, body.code, { request, set }), {
    can: 'oneself',
    body: Code,
    response: { 200: RecoveryCodes, ...refused },
    detail: {
      operationId: 'confirmTotp',
      summary: 'Confirm the second factor',
      description: 'Answers with recovery codes, which are shown in this answer only.',
    },
  })
  .delete('/me/totp', ({ ctx, body, request, set }) => totp.remove(ctx, body.code, { request, set }), {
    can: 'oneself',
    body: Code,
    response: { 200: done, ...refused },
    detail: { operationId: 'deleteTotp', summary: 'Remove your second factor' },
  })
  .delete('/users/:id/totp', ({ ctx, params }) => totp.removeOf(ctx, params.id), {
    can: 'privileged',
    params: one,
    response: { 200: done, 404: ProblemShape },
    detail: { operationId: 'deleteUserTotp', summary: 'Remove a user’s second factor' },
  })
