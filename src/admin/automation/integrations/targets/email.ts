import { createConnectionInput } from './choice-inputs'
import type { TargetKind } from './target-kind'

const TEMPLATE_HINT = 'It may contain values such as {{metadata.email}} or {{body.name}}.'

export const email: TargetKind<'email'> = {
  label: 'send a mail',
  fields: [
    {
      key: 'to',
      title: 'To',
      description: `Addresses, with commas between them. ${TEMPLATE_HINT}`,
      type: 'string',
      required: true,
    },
    { key: 'subject', title: 'Subject', type: 'string', required: true },
    { key: 'text', title: 'Text', description: TEMPLATE_HINT, type: 'text', required: true },
    {
      key: 'sourceId',
      title: 'Mail server',
      description: 'Default: the sender of all other mail.',
      type: 'string',
      Input: createConnectionInput('email'),
    },
  ],
  describe: ({ to, subject }) => `mail “${subject}” to ${to}`,
}
