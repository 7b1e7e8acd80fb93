/** What Atoll is compared with PocketBase on: contacts of eight fields, and the companies they belong to. */

const FIRST_NAMES = ['Ada', 'Grace', 'Alan', 'Edsger', 'Barbara', 'Donald', 'Leslie', 'Tony']
const LAST_NAMES = ['Rossi', 'Hopper', 'Turing', 'Dijkstra', 'Liskov', 'Knuth', 'Lamport', 'Hoare', 'Silva']
export const STAGES = ['lead', 'contacted', 'offered', 'won', 'lost']
export const COMPANIES = 1_000
const CREATED_MS = Date.UTC(2025, 0, 1)

export const makeContact = (n: number) => ({
  name: `${FIRST_NAMES[n % FIRST_NAMES.length]} ${LAST_NAMES[n % LAST_NAMES.length]} ${n}`,
  email: `contact${n}@example.com`,
  stage: STAGES[(n * 31) % STAGES.length]!,
  worth: (n * 7_919) % 10_007,
  company: (n * 13) % COMPANIES,
  active: n % 3 > 0,
  born: `${1950 + (n % 50)}-0${1 + (n % 9)}-1${n % 10}`,
  notes: `Notes on contact ${n}: ${'there is always something to be told in a sentence or two, '.repeat(3)}and this ends it.`,
})
export type Contact = ReturnType<typeof makeContact>

/** When a contact was created: each has its own time, as people are who come one after the other. */
export const createdAt = (n: number) => new Date(CREATED_MS + n * 1_000).toISOString()

export const USERS = 20
export const emailOf = (n: number) => `user${n}@example.com`
export const USER_PASSWORD = 'correct horse battery'
