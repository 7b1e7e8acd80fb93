import { t } from 'elysia'
import { assertMailQuota, queueMail } from '../../accounts/mail/mails'
import { openTransport, withMailServer } from '../../connections/kinds/email'
import { resolveConnection } from '../../connections/resolver'
import { id } from '../../core/shapes'
import { JobError } from '../../jobs/worker'
import { sendVia } from '../../platform/mail/smtp'
import { renderMail } from '../../platform/mail/templates'
import { renderTemplate } from '../templates'
import { type TargetKind, validateSource } from './target-kind'

const MAX_RECIPIENTS = 50 // per mail
const MAX_ADDRESSES_LENGTH = 32_000 // characters of all recipients
const MAX_SUBJECT_LENGTH = 300 // characters
const MAX_TEXT_LENGTH = 100_000

const shape = t.Object({
  sourceId: t.Optional({
    ...id,
    description: 'an integration source of the kind email; default: the mail of the tenant',
  }),
  to: t.String({ minLength: 1, maxLength: 2_000, description: 'addresses, comma-separated; may contain `{{…}}`' }),
  subject: t.String({ minLength: 1, maxLength: 1_000, description: 'may contain `{{…}}`' }),
  text: t.String({ minLength: 1, maxLength: MAX_TEXT_LENGTH, description: 'may contain `{{…}}`' }),
})

/** A mail, sent by a connection or by the tenant's own mail. Its texts may contain `{{…}}` (see `templates.ts`). */
export const email: TargetKind<typeof shape> = {
  shape,
  area: 'integrations',
  isBackground: true,
  validate: (referable, { sourceId }) => validateSource(referable, sourceId, 'email'),
  async run(ctx, { sourceId, to, ...target }, invocation) {
    const recipients = parseRecipients(renderTemplate(to, invocation, MAX_ADDRESSES_LENGTH))
    const subject = renderTemplate(target.subject, invocation, MAX_SUBJECT_LENGTH)
    const text = renderTemplate(target.text, invocation, MAX_TEXT_LENGTH)
    if (!sourceId) {
      await assertMailQuota(ctx)
      const mails = recipients.map((to) => ({ to, template: 'message' as const, data: { subject, text } }))
      await ctx.write((tx) => queueMail(ctx, tx, ...mails))
    } else {
      const source = await resolveConnection(ctx, sourceId, 'email')
      const { from = source.metadata.user ?? `atoll@${source.metadata.host}` } = source.metadata
      const mail = renderMail({ subject: '{{subject}}', text: '{{text}}' }, { subject, text })
      const to = withoutReached(recipients, invocation.lastOutcome)
      const sent = { _id: invocation._id, from, to, ...mail }
      await withMailServer(ctx.tenant, source.metadata, async () => sendVia(await openTransport(source), sent))
    }
    return new Response(null, { status: 204 })
  },
}

/** Returns those of the recipients that the last attempt did not reach. */
function withoutReached(recipients: string[], lastOutcome: unknown): string[] {
  const { refused } = (lastOutcome ?? {}) as { refused?: string[] }
  const left = recipients.filter((recipient) => refused?.includes(recipient))
  return left.length ? left : recipients
}

/** Returns the addresses without duplicates. @throws JobError that is permanent, because a retry would fail again */
function parseRecipients(to: string): string[] {
  const recipients = [...new Set(to.split(',').map((address) => address.trim()))].filter(Boolean)
  const invalid = recipients.find((address) => !/^[^\s@<>,;:"\\]{1,64}@[^\s@<>,;:"\\]{1,253}$/.test(address))
  if (invalid !== undefined)
    throw new JobError(`"${invalid.slice(0, 100)}" is not an e-mail address.`, { permanent: true })
  if (!recipients.length || recipients.length > MAX_RECIPIENTS)
    throw new JobError(`A mail can have 1 to ${MAX_RECIPIENTS} recipients, not ${recipients.length}.`, {
      permanent: true,
    })
  return recipients
}
