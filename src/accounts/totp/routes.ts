import { Elysia } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { sendSecret } from '../../core/response-headers'
import { IdParams, optionalBody, SuccessShape } from '../../core/shapes'
import { guard } from '../guard'
import { Proof } from '../shapes'
import { NewSecondFactor, RecoveryCodes, SecondFactor, TotpCode } from './shapes'
import * as totp from './totp'

const errorResponses = { 404: ProblemShape, 409: ProblemShape, 429: ProblemShape }

/** Routes of the second factor: codes of an authenticator app. */
export const totpRoutes = new Elysia({ tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/me/totp', ({ ctx }) => totp.get(ctx), {
    can: 'oneself',
    response: SecondFactor,
    detail: { operationId: 'getTotp', summary: 'Get the state of your second factor' },
  })
  .post('/me/totp', ({ ctx, body, request, set }) => sendSecret(set, totp.start(ctx, body, request)), {
    can: 'oneself',
    body: optionalBody(Proof),
    response: { 200: NewSecondFactor, 409: ProblemShape, 429: ProblemShape },
    detail: {
      operationId: 'startTotp',
      summary: 'Start setting up a second factor',
      description:
        'Requires a recent sign-in or another proof of identity. Returns the secret for an authenticator app. The second factor takes effect after `confirmTotp`.',
    },
  })
  .post('/me/totp/confirm', ({ ctx, body, request, set }) => sendSecret(set, totp.confirm(ctx, body.code, request)), {
    can: 'oneself',
    body: TotpCode,
    response: { 200: RecoveryCodes, ...errorResponses },
    detail: {
      operationId: 'confirmTotp',
      summary: 'Confirm the second factor',
      description: 'Returns recovery codes, which are shown only once.',
    },
  })
  .delete('/me/totp', ({ ctx, body, request }) => totp.remove(ctx, body.code, request), {
    can: 'oneself',
    body: TotpCode,
    response: { 200: SuccessShape, ...errorResponses },
    detail: { operationId: 'deleteTotp', summary: 'Remove your second factor' },
  })
  .delete('/users/:id/totp', ({ ctx, params }) => totp.removeForUser(ctx, params.id), {
    can: 'privileged',
    params: IdParams,
    response: { 200: SuccessShape, 404: ProblemShape },
    detail: { operationId: 'deleteUserTotp', summary: 'Remove a user’s second factor' },
  })
