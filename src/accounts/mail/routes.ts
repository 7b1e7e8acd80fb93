import { Elysia, t } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { done } from '../../core/shapes'
import { guard } from '../guard'
import { list } from './mails'
import { forgot, reset } from './recovery'
import { ForgottenPassword, Mail, MailQuery, PasswordReset, Verification } from './shapes'
import { askAgain, verify } from './verification'

/** What is sent by mail, and what people come back with. */
export const mailRoutes = new Elysia({ tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/mails', ({ ctx, query, request, set }) => list(ctx, query, { request, set }), {
    can: 'privileged',
    query: MailQuery,
    response: t.Array(Mail),
    detail: {
      operationId: 'listMails',
      summary: 'List mails that were sent or are queued',
      description: 'What was sent, or is to be; where no mail is sent, also what it says.',
    },
  })
  .post('/email/verify', ({ ctx, body }) => verify(ctx, body.token), {
    open: true,
    body: Verification,
    response: { 200: done, 400: ProblemShape },
    detail: { operationId: 'verifyEmail', summary: 'Verify an e-mail address' },
  })
  .post('/email/verification', ({ ctx, request }) => askAgain(ctx, request), {
    can: 'user',
    response: { 200: done, 409: ProblemShape, 429: ProblemShape },
    detail: { operationId: 'requestEmailVerification', summary: 'Request another verification mail' },
  })
  .post('/password/forgot', ({ ctx, body, request }) => forgot(ctx, body.email, request), {
    open: true,
    body: ForgottenPassword,
    response: { 200: done, 429: ProblemShape },
    detail: {
      operationId: 'requestPasswordReset',
      summary: 'Request a password reset mail',
      description: 'Sends a mail to who has this address. The answer is the same for every address.',
    },
  })
  .post('/password/reset', ({ ctx, body }) => reset(ctx, body.token, body.password), {
    open: true,
    body: PasswordReset,
    response: { 200: done, 400: ProblemShape },
    detail: { operationId: 'resetPassword', summary: 'Reset a password' },
  })
