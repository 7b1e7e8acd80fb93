import { IconAddressBook } from '@tabler/icons-react'
import type { Rule } from '../api/schema'
import { dayBefore, daysBefore, managedBy, pick, type Template } from './template'

const STAGES = ['lead', 'qualified', 'offer', 'won', 'lost'] as const
const DEAL_COUNT = 36

const COMPANIES = [
  ['aurora', 'Aurora Logistics', 'transport', 'Bergen'],
  ['borealis', 'Borealis Energy', 'energy', 'Tampere'],
  ['cobalt', 'Cobalt Foods', 'food', 'Porto'],
  ['delta', 'Delta Textiles', 'textiles', 'Gent'],
  ['ember', 'Ember Studio', 'design', 'Wien'],
  ['fjord', 'Fjord Analytics', 'software', 'Aarhus'],
] as const
const PEOPLE = [
  ['Grace Holm', 'Head of purchasing'],
  ['Tom Akkers', 'Managing director'],
  ['Lena Voss', 'Head of IT'],
  ['Rui Prates', 'Operations'],
  ['Signe Lund', 'Finance'],
  ['Max Adler', 'Marketing'],
] as const

/** Whoever is signed in reads all; each changes what is theirs. */
const SHARED: Rule[] = [
  { operation: 'read', scope: 'tenant', roleBased: ['*'] },
  ...(['create', 'update', 'delete'] as const).map((operation): Rule => ({ operation, roleBased: ['*'] })),
  ...managedBy('sales-lead').filter(({ operation }) => operation === 'update'),
]

/** Companies, people, and deals by stage. */
export const crm: Template = {
  key: 'crm',
  name: 'CRM',
  description: 'Companies, the people there, and the deals with them by stage.',
  icon: IconAddressBook,
  blueprints: [
    {
      ...{ key: 'companies', name: 'Companies', description: 'Whom we do business with.' },
      fields: [
        { key: 'name', type: 'string', required: true, unique: true },
        { key: 'industry', type: 'string' },
        { key: 'city', type: 'string' },
        { key: 'website', type: 'url' },
      ],
      permissions: SHARED,
    },
    {
      ...{ key: 'contacts', name: 'Contacts', description: 'The people there.' },
      fields: [
        { key: 'name', type: 'string', required: true },
        { key: 'email', type: 'email', unique: true },
        { key: 'job', type: 'string' },
        { key: 'company', type: 'relation', target: 'companies', onDelete: 'restrict' },
        { key: 'lastCall', type: 'datetime', title: 'last call' },
      ],
      permissions: SHARED,
    },
    {
      ...{ key: 'deals', name: 'Deals', description: 'What may become business.' },
      fields: [
        { key: 'name', type: 'string', required: true },
        { key: 'stage', type: 'string', enum: [...STAGES], default: 'lead' },
        { key: 'worth', type: 'decimal', min: 0 },
        { key: 'closes', type: 'date' },
        { key: 'company', type: 'relation', target: 'companies', onDelete: 'restrict' },
        { key: 'contact', type: 'relation', target: 'contacts', onDelete: 'nullify' },
      ],
      permissions: SHARED,
    },
  ],
  makeEntities: (now) => ({
    companies: COMPANIES.map(([identifier, name, industry, city]) => ({
      ...{ identifier, name, industry, city },
      website: `https://${identifier}.example.com`,
    })),
    contacts: PEOPLE.map(([name, job], n) => {
      const identifier = name.toLowerCase().replace(' ', '-')
      return {
        ...{ identifier, name, job, email: `${identifier}@example.com`, company: pick(COMPANIES, n)[0] },
        lastCall: daysBefore(now, 2 + n * 6.3),
      }
    }),
    deals: Array.from({ length: DEAL_COUNT }, (_, n) => {
      const [company, name] = pick(COMPANIES, n * 5)
      return {
        identifier: `deal-${1 + n}`,
        name: `${name}, ${pick(['pilot', 'renewal', 'first order', 'extension'], n)}`,
        ...{ company, stage: pick(STAGES, n * 3), worth: `${1_200 + ((n * 7_919) % 60_000)}.00` },
        contact: pick(PEOPLE, n * 5)[0]
          .toLowerCase()
          .replace(' ', '-'),
        closes: dayBefore(now, 60 - n * 5),
      }
    }),
  }),
  charts: [
    { title: 'Worth of deals by stage', blueprint: 'deals', kind: 'bar', sum: 'worth', groupBy: 'stage' },
    { title: 'Deals that close by month', blueprint: 'deals', kind: 'line', groupBy: 'closes', interval: 'month' },
  ],
}
