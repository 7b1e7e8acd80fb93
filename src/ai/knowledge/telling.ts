import type { Db, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { StoreRow } from './stores'
import { searchFiles } from './tables'
import { forgetWords, keepWords, stemsIn } from './words'

const WORDS = 48 // of a question
const TERMS = 1_000 // words of all stores
const LARGE = 2_000 // chunks; smaller stores are asked for every word
const SAMPLE = 300 // chunks
const COMMON = 1 / 16 // of them
const KNOWN = 1_000 // stores
const STEP = 50 // chunks between which others get their turn

type Common = { db: Db; chunks: number; words: Set<string> }
const known = new Map<string, Common>()

/**
 * The words of a question by which each store is to be asked. A word that so many chunks have says nothing of any, and to
 * rank them all would take long.
 */
export async function tellingWords(
  db: Db,
  stores: StoreRow[],
  question: string,
): Promise<[store: number, words: string[]][]> {
  const words = [...new Set(stemsIn(question))].slice(0, Math.min(WORDS, TERMS / stores.length))
  const asked: [number, string[]][] = []
  for (const store of stores) {
    const common = store.chunks < LARGE ? undefined : await commonIn(db, store)
    const telling = common ? words.filter((word) => !common.has(word)) : words
    asked.push([store.seq, telling.length ? telling : words])
  }
  return asked
}

/** By a sample, which is taken again when a store has doubled. */
async function commonIn(db: Db, { _id, chunks }: StoreRow): Promise<Set<string>> {
  const found = known.get(_id)
  if (found?.db === db && chunks < found.chunks * 2) return found.words
  const rows = await db.ask(
    `select text from knowledge_chunks where number in (
       select c.number from knowledge_files f join knowledge_chunks c on c.file = f._id
       where f.store = ? and f.ready = 1 order by c.number * 7919 % 10007, c.number limit ?)`,
    [_id, SAMPLE],
  )
  const counts = new Map<string, number>()
  for (const [n, [text]] of rows.entries()) {
    for (const word of new Set(stemsIn(text as string))) counts.set(word, (counts.get(word) ?? 0) + 1)
    if (n % STEP === STEP - 1) await new Promise(setImmediate)
  }
  const words = new Set([...counts].filter(([, count]) => count > rows.length * COMMON).map(([word]) => word))
  if (known.size >= KNOWN) known.clear()
  known.set(_id, { db, chunks, words })
  return words
}

const ready = new WeakMap<Db, Set<string>>()

/** Makes the words of those files ready that have none: they are not taken along when a tenant moves. */
export async function readyWords({ db, write }: Pick<Tenant, 'db' | 'write'>, stores: StoreRow[]) {
  const seen = ready.get(db) ?? new Set()
  ready.set(db, seen)
  for (const { _id, seq } of stores) {
    if (seen.has(_id)) continue
    const rows = await db.ask(
      `select f._id from knowledge_files f left join search_files s on s.file = f._id
       where f.store = ? and f.ready = 1 and s.file is null order by f._id`,
      [_id],
    )
    for (const [file] of rows as [string][])
      for (let from: number | undefined = -1; from !== undefined; ) {
        const after: number = from
        from = await write((tx) => makeWords(tx, seq, file, after))
      }
    seen.add(_id)
  }
}

const SLICE = 300

/** The words of some more chunks of a file; where they end, or nothing at its end. */
async function makeWords(tx: Tx, store: number, file: string, after: number): Promise<number | undefined> {
  const sql =
    'select number, text, position from knowledge_chunks where file = ? and position > ? order by position limit ?'
  const rows = (await tx.ask(sql, [file, after, SLICE])) as [number: number, text: string, position: number][]
  const numbers = rows.map(([number]) => number)
  await forgetWords(tx, store, numbers)
  await keepWords(
    tx,
    store,
    rows.map(([number, text]) => [number, text] as const),
  )
  if (rows.length === SLICE) return rows.at(-1)![2]
  await tx.insert(searchFiles).values({ file }).onConflictDoNothing()
}
