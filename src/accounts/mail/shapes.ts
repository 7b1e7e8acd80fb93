import { type Static, t } from 'elysia'
import { id, text, time } from '../../core/shapes'
import { TemplateChange } from '../../platform/mail/template-settings'
import { growingListQuery } from '../../storage/pagination'
import { email } from '../shapes'

export const Mail = t.Object({
  _id: id,
  to: t.String(),
  template: t.String(),
  user: t.Nullable(id),
  state: t.String({ description: 'waiting, sent or failed; kept if mail delivery is disabled' }),
  subject: t.Nullable(t.String()),
  text: t.Nullable(t.String({ description: 'only if mail delivery is disabled' })),
  html: t.Nullable(t.String()),
  error: t.Nullable(t.String({ description: 'error of the latest attempt' })),
  created: time,
  sent: t.Nullable(time),
})

/** Parts of a template that replace the standard ones. */
export const MailTemplateChange = t.Object({ ...TemplateChange.properties })

export const MailTemplate = t.Object({
  name: t.String({ description: 'the key in mail-templates' }),
  standard: t.Object({
    subject: t.String(),
    text: t.String(),
    html: t.Nullable(t.String()),
    link: t.Nullable(
      t.String({
        description: 'page on the first website, or on this server if there is none; null for mails without a link',
      }),
    ),
  }),
  custom: MailTemplateChange,
  placeholders: t.Array(t.String({ description: 'a name that {{name}} can use' })),
})
export type MailTemplate = Static<typeof MailTemplate>

export const RenderedMail = t.Object({ subject: t.String(), text: t.String(), html: t.String() })
export const TemplateParams = t.Object({ name: t.String() })

const states = ['waiting', 'sent', 'kept', 'failed'] as const
export const MailQuery = t.Object({
  ...growingListQuery,
  to: t.Optional(t.String({ description: 'e-mail address of the recipient' })),
  state: t.Optional(t.Union(states.map((state) => t.Literal(state)))),
})

const token = text(200, 1)
export const RevertToken = t.Object({ token })
export const ForgottenPassword = t.Object({ email })

/** What a mail proves the reading of: the token of its link, or its code. */
const mailProof = {
  token: t.Optional(t.String({ minLength: 1, maxLength: 200, description: 'token from the link' })),
  email: t.Optional(
    t.String({ minLength: 1, maxLength: 320, description: 'with `code`: the address that received the mail' }),
  ),
  code: t.Optional(
    t.String({ minLength: 1, maxLength: 100, description: 'eight-digit code from the mail, valid for ten minutes' }),
  ),
}
export const EmailVerification = t.Object(mailProof)
export type MailProof = Static<typeof EmailVerification>
export const PasswordReset = t.Object({ ...mailProof, password: text(1_000) })
export type PasswordReset = Static<typeof PasswordReset>
