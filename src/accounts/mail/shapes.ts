import { t } from 'elysia'
import { id, text, time } from '../../core/shapes'
import { growingListing } from '../../storage/lists'
import { email } from '../shapes'

export const Mail = t.Object({
  _id: id,
  to: t.String(),
  template: t.String(),
  user: t.Nullable(id),
  state: t.String({ description: 'waiting, sent, failed, or kept where no mail is sent' }),
  subject: t.Nullable(t.String()),
  text: t.Nullable(t.String({ description: 'told where no mail is sent' })),
  html: t.Nullable(t.String()),
  error: t.Nullable(t.String({ description: 'what became of the latest attempt' })),
  created: time,
  sent: t.Nullable(time),
})

const states = ['waiting', 'sent', 'kept', 'failed'] as const
export const MailQuery = t.Object({
  ...growingListing,
  to: t.Optional(t.String({ description: 'an address' })),
  state: t.Optional(t.Union(states.map((state) => t.Literal(state)))),
})

const token = text(200, 1)
export const Verification = t.Object({ token })
export const ForgottenPassword = t.Object({ email })
export const PasswordReset = t.Object({ token, password: text(1_000) })
