import { Elysia, t } from 'elysia'
import { ProblemShape } from '../../core/problem'
import { sendPage, sendSecret } from '../../core/response-headers'
import { SuccessShape } from '../../core/shapes'
import { guard } from '../guard'
import { revertEmailChange } from './email-changes'
import { listMails } from './mails'
import { requestPasswordReset, resetPassword } from './password-reset'
import {
  EmailVerification,
  ForgottenPassword,
  Mail,
  MailQuery,
  MailTemplate,
  MailTemplateChange,
  PasswordReset,
  RenderedMail,
  RevertToken,
  TemplateParams,
} from './shapes'
import { listTemplates, previewTemplate, sendTestMail } from './tenant-templates'
import { resendVerification, verifyEmail } from './verification'

/** Routes of mails and of the tokens in them. */
export const mailRoutes = new Elysia({ tags: ['accounts'] })
  .use(guard('accounts'))
  .get('/mails', ({ ctx, query, request, set }) => sendPage({ request, set }, sendSecret(set, listMails(ctx, query))), {
    can: 'privileged',
    query: MailQuery,
    response: t.Array(Mail),
    detail: {
      operationId: 'listMails',
      summary: 'List sent and queued mails',
      description: 'Includes content only if mail delivery is disabled.',
    },
  })
  .get('/mails/templates', ({ ctx }) => listTemplates(ctx), {
    can: 'privileged',
    response: t.Array(MailTemplate),
    detail: { operationId: 'listMailTemplates', summary: 'List mail templates' },
  })
  .post('/mails/templates/:name/preview', ({ ctx, params, body }) => previewTemplate(ctx, params.name, body), {
    can: 'privileged',
    params: TemplateParams,
    body: MailTemplateChange,
    response: { 200: RenderedMail, 404: ProblemShape },
    detail: {
      operationId: 'previewMailTemplate',
      summary: 'Preview a mail template',
      description: 'Returns the mail with sample values. Omitted parts use the standard template.',
    },
  })
  .post('/mails/templates/:name/test', ({ ctx, params }) => sendTestMail(ctx, params.name), {
    can: 'privileged',
    params: TemplateParams,
    response: { 200: SuccessShape, 404: ProblemShape, 409: ProblemShape },
    detail: {
      operationId: 'sendTestMail',
      summary: 'Send yourself a test mail',
      description: 'Queues a mail to your e-mail address, rendered from the saved template with sample values.',
    },
  })
  .post('/email/verify', ({ ctx, body }) => verifyEmail(ctx, body), {
    open: true,
    body: EmailVerification,
    response: { 200: SuccessShape, 400: ProblemShape, 409: ProblemShape },
    detail: {
      operationId: 'verifyEmail',
      summary: 'Verify an e-mail address',
      description:
        'Takes the token from the link in the mail, or the address and the eight-digit code, which is valid for ten minutes and five attempts. Only one of them can be used, and only once.',
    },
  })
  .post('/email/verification', ({ ctx, request }) => resendVerification(ctx, request), {
    can: 'user',
    response: { 200: SuccessShape, 409: ProblemShape, 429: ProblemShape },
    detail: { operationId: 'requestEmailVerification', summary: 'Request another verification mail' },
  })
  .post('/email/revert', ({ ctx, body }) => revertEmailChange(ctx, body.token), {
    open: true,
    body: RevertToken,
    response: { 200: SuccessShape, 400: ProblemShape, 409: ProblemShape },
    detail: {
      operationId: 'revertEmailChange',
      summary: 'Revert a change of the e-mail address',
      description:
        'Takes the token mailed to the old address. Ends all sessions and revokes all API tokens of the user.',
    },
  })
  .post('/password/forgot', ({ ctx, body, request }) => requestPasswordReset(ctx, body.email, request), {
    open: true,
    body: ForgottenPassword,
    response: { 200: SuccessShape, 429: ProblemShape },
    detail: {
      operationId: 'requestPasswordReset',
      summary: 'Request a password reset mail',
      description: 'Sends a mail to the address if a user has verified it. The response is the same for every address.',
    },
  })
  .post('/password/reset', ({ ctx, body, request }) => resetPassword(ctx, body, request), {
    open: true,
    body: PasswordReset,
    response: { 200: SuccessShape, 400: ProblemShape },
    detail: {
      operationId: 'resetPassword',
      summary: 'Reset a password',
      description:
        'Takes the token from the link in the mail, valid for one hour, or the address and the eight-digit code, valid for ten minutes and five attempts. Ends all sessions and revokes all API tokens of the user.',
    },
  })
