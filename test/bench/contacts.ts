/** The data of the comparison: contacts of eight fields, and the companies and workspaces they belong to. */

const FIRST_NAMES = ['Ada', 'Grace', 'Alan', 'Edsger', 'Barbara', 'Donald', 'Leslie', 'Tony']
export const LAST_NAMES = ['Rossi', 'Hopper', 'Turing', 'Dijkstra', 'Liskov', 'Knuth', 'Lamport', 'Hoare', 'Silva']
export const STAGES = ['lead', 'contacted', 'offered', 'won', 'lost']
export const COMPANIES = 1_000
export const WORKSPACES = 4
const CREATED_MS = Date.UTC(2025, 0, 1)

export const makeContact = (n: number) => ({
  name: `${FIRST_NAMES[n % FIRST_NAMES.length]} ${LAST_NAMES[n % LAST_NAMES.length]} ${n}`,
  email: `contact${n}@example.com`,
  // Each company has contacts of all stages.
  stage: STAGES[(n * 31 + Math.floor(n / COMPANIES)) % STAGES.length]!,
  worth: (n * 7_919) % 10_007,
  company: (n * 13) % COMPANIES,
  active: n % 3 > 0,
  born: `${1950 + (n % 50)}-0${1 + (n % 9)}-1${n % 10}`,
  notes: `Notes on contact ${n}: ${'there is always something to be told in a sentence or two, '.repeat(3)}and this ends it.`,
})
export type Contact = ReturnType<typeof makeContact>
export const CONTACT_FIELDS = ['name', 'email', 'stage', 'worth', 'company', 'active', 'born', 'notes'] as const
export type ContactField = (typeof CONTACT_FIELDS)[number]

/** Pairs of words: each word occurs in more than ten thousand of 100,000 contacts, and both words in one of 72. */
export const COMMON_WORDS = FIRST_NAMES.flatMap((first) => LAST_NAMES.map((last) => [first, last] as const))

/** Ids of 15 small letters and digits, as PocketBase wants them. */
const toId = (kind: string, n: number) => kind + `${n}`.padStart(15 - kind.length, '0')
export const contactId = (n: number) => toId('contact', n)
export const companyId = (n: number) => toId('company', n)
export const workspaceId = (n: number) => toId('workspace', n)
export const workspaceOf = (n: number) => n % WORKSPACES

/** A contact as sent and stored, with the id of its company. */
export const makeRecord = (n: number) => {
  const { company, ...contact } = makeContact(n)
  return { ...contact, company: companyId(company) }
}

/** The time at which a contact was created; each contact has a different one. */
export const createdAt = (n: number) => new Date(CREATED_MS + n * 1_000).toISOString()

export const USERS = 20
export const emailOf = (n: number) => `user${n}@example.com`
/** A user who can only read the contacts of the first workspace. */
export const MEMBER_EMAIL = 'member@example.com'
export const USER_PASSWORD = 'correct horse battery'

/** Indexes that fit the lists of the table: filters first, then the order. */
export const FITTING_INDEXES = [
  'stage, active, worth',
  'stage, active, name',
  'company, stage, worth',
  'stage, worth',
  'stage, created',
  'workspace, stage, active, worth',
  'workspace, stage, active, name',
]
export const SINGLE_INDEXES = ['name', 'stage', 'worth', 'company', 'created']
