// The rows of the table: what is asked, and how many requests are in flight.
import { COMMON_WORDS, COMPANIES, companyId, LAST_NAMES, STAGES, USERS } from './contacts'
import { drawFirstShapes, drawQuery } from './queries'
import type { ListQuestion, Question } from './questions'
import type { Random } from './random'

export type TableRow = {
  name: string
  /** Requests that are in flight at once, for some seconds. Without it, each question is asked once, one by one. */
  inFlight?: number
  /** Returns the questions of a round. */
  draw(random: Random, rows: number): Question[]
  caller?: 'member'
  writes?: boolean
  isDurable?: boolean
  /** The data was imported and never read. */
  isJustImported?: boolean
  /** The others have their indexes of one field only, because nothing is read that needs better ones. */
  hasSingleIndexes?: boolean
  onlyAtoll?: boolean
}

const DRAWN_PER_ROUND = 2_000
const RANDOM_QUERIES = 1_000
/** How many lists of each row are asked before the rows are measured. */
export const USED_LISTS = 10

const drawMany =
  (drawOne: (random: Random, rows: number) => Question): TableRow['draw'] =>
  (random, rows) =>
    Array.from({ length: DRAWN_PER_ROUND }, () => drawOne(random, rows))

const drawBroadList = (random: Random): ListQuestion => ({
  kind: 'list',
  filters: [
    { field: 'stage', value: random.pick(STAGES) },
    { field: 'active', value: random.pick([true, false]) },
  ],
  sort: random.pick(['-worth', 'name']),
})

const drawCountedList = (random: Random): ListQuestion => ({
  kind: 'list',
  filters: [
    { field: 'stage', value: random.pick(STAGES) },
    { field: 'worth', operator: '$gte', value: random.below(10_007) },
  ],
  sort: '-created',
  isCounted: true,
})

const drawCompanyList = (random: Random): ListQuestion => ({
  kind: 'list',
  filters: [
    { field: 'company', value: companyId(random.below(COMPANIES)) },
    { field: 'stage', value: random.pick(STAGES) },
  ],
  sort: '-worth',
})

const drawContains = (random: Random): ListQuestion => ({
  kind: 'list',
  filters: [
    { field: 'name', operator: '$like', value: `${random.pick(LAST_NAMES).toLowerCase()} ${10 + random.below(90)}` },
  ],
  sort: '-created',
})

/** Returns the number of a contact that is no part of the number of another. */
function drawLongNumber(random: Random, rows: number) {
  const shortest = 10 ** (`${rows - 1}`.length - 1)
  return shortest + random.below(rows - shortest)
}

const drawWords = (words: readonly string[]): ListQuestion => ({
  kind: 'list',
  filters: [],
  words: words.map((word) => word.toLowerCase()),
})

const drawGet = (random: Random, rows: number): Question => ({ kind: 'get', contact: random.below(rows) })
const drawCreate = (random: Random, rows: number): Question => ({ kind: 'create', n: rows + random.below(1e6) })
const drawUpdate = (random: Random, rows: number): Question => ({
  kind: 'update',
  contact: random.below(rows),
  change: { stage: random.pick(STAGES), worth: random.below(10_007) },
})

/** 45 % reads by id, 45 % lists, 10 % creates. */
const drawMixed = (random: Random, rows: number): Question => {
  const part = random.below(20)
  if (part < 2) return drawCreate(random, rows)
  return part < 11 ? drawGet(random, rows) : drawBroadList(random)
}

const createRows = (isDurable: boolean): TableRow[] =>
  [1, 16, 64].map((inFlight) => ({
    name: `create, ${isDurable ? 'durable' : 'not durable'}, ${inFlight} in flight`,
    inFlight,
    draw: drawMany(drawCreate),
    writes: true,
    isDurable,
    hasSingleIndexes: true,
  }))

export const TABLE_ROWS: TableRow[] = [
  { name: 'get by id', inFlight: 32, draw: drawMany(drawGet) },
  { name: 'list, two broad filters, an order', inFlight: 8, draw: drawMany(drawBroadList) },
  {
    name: "the same list, members' rule",
    inFlight: 8,
    draw: drawMany((random) => ({ ...drawBroadList(random), workspace: 0 })),
    caller: 'member',
  },
  {
    name: 'the same list, relation shown',
    inFlight: 8,
    draw: drawMany((random) => ({ ...drawBroadList(random), isPopulated: true })),
  },
  { name: 'list by relation and stage, an order', inFlight: 8, draw: drawMany(drawCompanyList) },
  { name: 'broad list, counted', inFlight: 8, draw: drawMany(drawCountedList) },
  { name: '90 % reads, 10 % durable creates', inFlight: 32, draw: drawMany(drawMixed), writes: true, isDurable: true },
  { name: 'name contains a text', inFlight: 4, draw: drawMany(drawContains) },
  {
    name: 'search, a rare word',
    inFlight: 4,
    draw: drawMany((random, rows) => drawWords([`${drawLongNumber(random, rows)}`])),
  },
  { name: 'search, two common words', inFlight: 4, draw: drawMany((random) => drawWords(random.pick(COMMON_WORDS))) },
  ...createRows(false),
  ...createRows(true),
  ...[false, true].map((isDurable) => ({
    name: `update of two fields, ${isDurable ? 'durable' : 'not durable'}, 16 in flight`,
    inFlight: 16,
    draw: drawMany(drawUpdate),
    writes: true,
    isDurable,
    hasSingleIndexes: true,
  })),
  { name: 'the same list, just imported', inFlight: 8, draw: drawMany(drawBroadList), isJustImported: true },
  { name: 'first queries of shapes, just imported, one by one', draw: drawFirstShapes, isJustImported: true },
  {
    name: `${RANDOM_QUERIES} random queries, one by one`,
    draw: (random, rows) => Array.from({ length: RANDOM_QUERIES }, () => drawQuery(random, rows)),
    onlyAtoll: true,
  },
  { name: 'sign-in', inFlight: 4, draw: drawMany((random) => ({ kind: 'sign-in', user: random.below(USERS) })) },
]

export type UsualList = { question: Question; caller: 'user' | 'member' }

/** Returns some lists of each row, which an installation has been asked before the rows are measured. */
export const drawUsualLists = (random: Random, rows: number, count: number): UsualList[] =>
  TABLE_ROWS.filter(({ inFlight, isJustImported }) => inFlight && !isJustImported).flatMap(({ draw, caller }) =>
    draw(random, rows)
      .filter(({ kind }) => kind === 'list')
      .slice(0, count)
      .map((question) => ({ question, caller: caller ?? 'user' })),
  )
