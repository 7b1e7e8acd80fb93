import { t } from 'elysia'
import { post } from '../../../accounts/mail/mails'
import { written } from '../../../accounts/mail/templates'
import { handOver } from '../../../accounts/mail/transport'
import { id } from '../../../core/shapes'
import { Failure } from '../../../jobs/work'
import { transportOf } from '../../connections/kinds/email'
import { opened } from '../../connections/opening'
import { worded } from '../wording'
import { sourceFlaws, type TargetKind } from './target'

const MOST = 50 // recipients of a mail
const SUBJECT = 300 // characters
const TEXT = 100_000

const shape = t.Object({
  sourceId: t.Optional({ ...id, description: 'a connection of the kind email; by the mail of the tenant unless told' }),
  to: t.String({ minLength: 1, maxLength: 2_000, description: 'addresses, comma-separated; may hold `{{…}}`' }),
  subject: t.String({ minLength: 1, maxLength: 1_000, description: 'may hold `{{…}}`' }),
  text: t.String({ minLength: 1, maxLength: TEXT, description: 'may hold `{{…}}`' }),
})

/** A mail: by a connection, or as the tenant's own. Its texts may say `{{…}}`, which `wording.ts` explains. */
export const email: TargetKind<typeof shape> = {
  shape,
  area: 'integrations',
  later: true,
  flaws: (tx, { sourceId }) => sourceFlaws(tx, sourceId, 'email'),
  async run(ctx, { sourceId, to, ...target }, occasion) {
    const recipients = recipientsIn(worded(to, occasion))
    const subject = worded(target.subject, occasion).slice(0, SUBJECT)
    const text = worded(target.text, occasion).slice(0, TEXT)
    if (!sourceId) {
      const letters = recipients.map((to) => ({ to, template: 'message' as const, data: { subject, text } }))
      await ctx.write((tx) => post(ctx, tx, ...letters))
    } else {
      const source = await opened(ctx, sourceId, 'email')
      const { from = source.metadata.user ?? `atoll@${source.metadata.host}` } = source.metadata
      const mail = written({ subject: '{{subject}}', text: '{{text}}' }, { subject, text })
      await handOver(await transportOf(source), { _id: occasion._id, from, to: recipients, ...mail })
    }
    return new Response(null, { status: 204 })
  },
}

/** @throws Failure: the same words will never be addresses */
function recipientsIn(to: string): string[] {
  const all = [...new Set(to.split(',').map((one) => one.trim()))].filter(Boolean)
  const flaw = all.find((one) => !/^[^\s@<>,;:"\\]{1,64}@[^\s@<>,;:"\\]{1,253}$/.test(one))
  if (flaw !== undefined) throw new Failure(`"${flaw.slice(0, 100)}" is no e-mail address.`, { hopeless: true })
  if (!all.length || all.length > MOST)
    throw new Failure(`A mail goes to 1 to ${MOST} addresses, and not to ${all.length}.`, { hopeless: true })
  return all
}
