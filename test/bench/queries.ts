// Lists of contacts in many ways: random ones, the first of several shapes, and those with a bound on what they may take.
import { COMPANIES, CONTACT_FIELDS, companyId, makeContact, STAGES } from './contacts'
import type { Filter, ListQuestion } from './questions'
import { createRandom, type Random } from './random'

const OPERATORS = [undefined, '$lt', '$gte', '$gt', '$lte', '$ne', '$in', '$nin'] as const
const QUERIED_FIELDS = [...CONTACT_FIELDS, 'identifier', 'created', 'updated'] as const
const DAY_MS = 86_400_000

function drawValue(field: Filter['field'], random: Random, rows: number): Filter['value'] {
  const contact = makeContact(random.below(rows))
  if (field === 'created' || field === 'updated') return new Date(Date.now() - random.below(DAY_MS)).toISOString()
  if (field === 'identifier') return crypto.randomUUID()
  return field === 'company' ? companyId(contact.company) : contact[field]
}

/** Returns a query of one to three filters by any field and operator, in any order. */
export function drawQuery(random: Random, rows: number): ListQuestion {
  const filters = new Map<string, Filter>()
  for (let count = 1 + random.below(3); count > 0; count--) {
    const [field, operator] = [random.pick(QUERIED_FIELDS), random.pick(OPERATORS)]
    const draw = () => drawValue(field, random, rows)
    const isList = operator === '$in' || operator === '$nin'
    const value = isList ? JSON.stringify(Array.from({ length: 1 + random.below(4) }, draw)) : draw()
    // A parameter that is sent twice is one list.
    filters.set(`${field}${operator}`, { field, operator, value })
  }
  const sort = Array.from({ length: 1 + random.below(2) }, () => random.pick(['', '-']) + random.pick(QUERIED_FIELDS))
  return { kind: 'list', filters: [...filters.values()], sort: sort.join() }
}

const shuffle = <T>(values: T[], random: Random): T[] =>
  values
    .map((value) => [random.below(1e9), value] as const)
    .sort(([one], [other]) => one - other)
    .map(([, value]) => value)

const list = (filters: Filter[], more: Partial<ListQuestion> = {}): ListQuestion => ({ kind: 'list', filters, ...more })
const equals = (field: Filter['field'], value: Filter['value']): Filter => ({ field, value })
const atLeast = (field: Filter['field'], value: Filter['value']): Filter => ({ field, operator: '$gte', value })
const contains = (field: Filter['field'], value: string): Filter => ({ field, operator: '$like', value })

/** Returns one query of each of several shapes, in any order. */
export function drawFirstShapes(random: Random, rows: number): ListQuestion[] {
  const stage = () => equals('stage', random.pick(STAGES))
  const worth = () => atLeast('worth', random.below(10_007))
  const some = () => `${random.below(rows)}`
  return shuffle(
    [
      list([contains('name', some().slice(0, 3)), equals('active', false)], { sort: '-name' }),
      list([stage(), equals('active', true)], { sort: '-worth' }),
      list([stage(), worth()], { sort: '-created', isCounted: true }),
      list([equals('company', companyId(random.below(COMPANIES))), stage()], { sort: '-worth' }),
      list([contains('email', some())], { sort: 'email' }),
      list([atLeast('born', `19${50 + random.below(50)}-05-10`), stage()], { sort: 'born' }),
      list([worth(), { field: 'worth', operator: '$lt', value: random.below(10_007) }], { sort: 'name' }),
      list([contains('notes', `contact ${some()}`)], { sort: '-created' }),
      list([], { words: [some()] }),
      list([stage()], { words: ['something', 'sentence'] }),
    ],
    random,
  )
}

const repeat = (count: number, query: (n: number) => ListQuestion) => Array.from({ length: count }, (_, n) => query(n))

/** What is asked of a server that has been asked before, beside what the half of each may take at most (ms). */
export function warmQueries(rows: number): Record<string, { queries: ListQuestion[]; maxMs?: number }> {
  const random = createRandom('warm')
  return {
    '$q of two words, few have them': {
      queries: repeat(50, () => list([], { words: ['contact', `${random.below(rows)}`] })),
      maxMs: 5,
    },
    '$q of two words, all have them': { queries: [list([], { words: ['always', 'something'] })], maxMs: 5 },
    ...Object.fromEntries(
      QUERIED_FIELDS.filter((field) => field !== 'company').map((field) => [
        `sort by ${field}`,
        { queries: [list([], { sort: field }), list([], { sort: `-${field}` })], maxMs: 3 },
      ]),
    ),
    'count by company': {
      queries: repeat(50, (n) => list([equals('company', companyId(n))], { isCounted: true })),
      maxMs: 3,
    },
    'count by active, two thirds': { queries: [list([equals('active', true)], { isCounted: true })], maxMs: 3 },
    'count by worth and active': {
      queries: repeat(50, (n) => list([equals('worth', n), equals('active', true)], { isCounted: true })),
      maxMs: 3,
    },
    'count by a range of worth': {
      queries: repeat(50, (n) =>
        list([atLeast('worth', n * 10), { field: 'worth', operator: '$lt', value: n * 10 + 100 }], { isCounted: true }),
      ),
      maxMs: 3,
    },
    'like, in the middle': { queries: repeat(10, (n) => list([contains('email', `${n + 10}7`)])) },
  }
}
