import { t } from 'elysia'
import { id, text, time } from '../../core/shapes'
import { growingListQuery } from '../../storage/pagination'
import { email } from '../shapes'

export const Mail = t.Object({
  _id: id,
  to: t.String(),
  template: t.String(),
  user: t.Nullable(id),
  state: t.String({ description: 'waiting, sent or failed; kept where mail delivery is disabled' }),
  subject: t.Nullable(t.String()),
  text: t.Nullable(t.String({ description: 'only where mail delivery is disabled' })),
  html: t.Nullable(t.String()),
  error: t.Nullable(t.String({ description: 'error of the latest attempt' })),
  created: time,
  sent: t.Nullable(time),
})

const states = ['waiting', 'sent', 'kept', 'failed'] as const
export const MailQuery = t.Object({
  ...growingListQuery,
  to: t.Optional(t.String({ description: 'e-mail address of the recipient' })),
  state: t.Optional(t.Union(states.map((state) => t.Literal(state)))),
})

const token = text(200, 1)
export const EmailVerification = t.Object({ token })
export const ForgottenPassword = t.Object({ email })
export const PasswordReset = t.Object({ token, password: text(1_000) })
