import { IconLifebuoy } from '@tabler/icons-react'
import { daysBefore, managedBy, pick, readableByGuests, type Template } from './template'

const PRIORITIES = ['normal', 'normal', 'high', 'low', 'urgent'] as const
const STATES = ['solved', 'solved', 'waiting', 'open'] as const
const SUBJECTS = [
  'I cannot sign in',
  'The invoice has the wrong address',
  'How do I invite my team?',
  'The export stops half-way',
  'Please delete my account',
  'The page is slow on my phone',
  'Can I pay by bank transfer?',
  'A field is missing after the import',
] as const
const TICKET_COUNT = 40

/** Tickets with their replies, and articles that guests read. */
export const helpDesk: Template = {
  key: 'help-desk',
  name: 'Help desk',
  description: 'Tickets that users open and agents answer, and articles that everybody reads.',
  icon: IconLifebuoy,
  blueprints: [
    {
      ...{ key: 'tickets', name: 'Tickets', description: 'What people ask for.' },
      fields: [
        { key: 'subject', type: 'string', required: true, max: 200 },
        { key: 'question', type: 'text' },
        { key: 'requester', type: 'email', required: true },
        { key: 'state', type: 'string', enum: ['open', 'waiting', 'solved'], default: 'open' },
        { key: 'priority', type: 'string', enum: ['low', 'normal', 'high', 'urgent'], default: 'normal' },
        { key: 'opened', type: 'datetime', required: true },
        { key: 'notes', type: 'text', title: 'internal notes', readRoles: ['agent'], writeRoles: ['agent'] },
      ],
      permissions: [
        ...managedBy('agent'),
        { operation: 'create', roleBased: ['*'] },
        { operation: 'read', roleBased: ['*'] },
      ],
    },
    {
      ...{ key: 'replies', name: 'Replies', description: 'What was answered.' },
      fields: [
        { key: 'ticket', type: 'relation', target: 'tickets', required: true, onDelete: 'cascade' },
        { key: 'text', type: 'text', required: true },
      ],
      permissions: [...managedBy('agent'), { operation: 'create', roleBased: ['*'] }],
    },
    {
      ...{ key: 'articles', name: 'Articles', description: 'Answers that help without a ticket.' },
      fields: [
        { key: 'title', type: 'string', required: true },
        { key: 'text', type: 'text', required: true },
        { key: 'tags', type: 'string', multi: true },
      ],
      permissions: [readableByGuests, ...managedBy('agent')],
    },
  ],
  makeEntities: (now) => ({
    tickets: Array.from({ length: TICKET_COUNT }, (_, n) => ({
      identifier: `ticket-${101 + n}`,
      subject: pick(SUBJECTS, n * 3),
      question: `${pick(SUBJECTS, n * 3)}. What can I do?`,
      requester: `user${1 + (n % 17)}@example.com`,
      state: n > TICKET_COUNT - 6 ? 'open' : pick(STATES, n),
      priority: pick(PRIORITIES, n),
      opened: daysBefore(now, (TICKET_COUNT - n) * 1.7),
    })),
    replies: Array.from({ length: 24 }, (_, n) => ({
      identifier: `reply-${1 + n}`,
      ticket: `ticket-${101 + n}`,
      text: 'Thank you for telling us. We have looked into it, and it works again.',
    })),
    articles: [
      {
        identifier: 'sign-in',
        title: 'What to do when you cannot sign in',
        text: 'Reset your password by e-mail.',
        tags: ['account'],
      },
      {
        identifier: 'invite',
        title: 'Invite your team',
        text: 'Open your workspace, and choose Invite.',
        tags: ['team'],
      },
      {
        identifier: 'pay',
        title: 'Ways to pay',
        text: 'Cards, PayPal, and bank transfer by invoice.',
        tags: ['payment'],
      },
    ],
  }),
  charts: [
    { title: 'Tickets by week', blueprint: 'tickets', kind: 'line', groupBy: 'opened', interval: 'week' },
    { title: 'Tickets by state', blueprint: 'tickets', kind: 'pie', groupBy: 'state' },
  ],
}
