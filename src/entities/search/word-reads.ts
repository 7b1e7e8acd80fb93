import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { hasReaderThreads, readInThread, ThreadFailed } from '../../tenancy/reader-threads'
import type { Tenant } from '../../tenancy/tenants'
import { STATE_SQL } from '../indexing/index-rows'
import { takeWithinSize } from '../store/sql-fragments'
import { toSearchTerms } from './tokenizer'
import { getWordColumns, readDocuments, type WordRow } from './word-filter'

/** Entities per read: in a thread, or on the main thread, which other requests wait for. */
const [ENTITIES_PER_THREAD_READ, ENTITIES_PER_READ] = [500, 100]
const MAX_BYTES_PER_READ = 1 << 19 // of documents, unless a single one is larger

/** The words of the next entities of a blueprint, with the state of each. */
export type WordBatch = {
  words: [seq: number, state: string, terms: string][]
  /** The numbers of all entities in its range, also those of other blueprints. */
  numbers: number[]
  /** Whether no entity follows. */
  isEnd: boolean
}

/**
 * Reads entities by number and splits them into words. A reader thread, if there is one, reads the next batch while the last one
 * is written.
 */
export class WordReader {
  #ahead?: { from: number; batch: Promise<WordBatch> }

  constructor(
    private tenant: Tenant,
    private model: Model,
    private signal = new AbortController().signal,
  ) {}

  /** Returns the words of the next entities after a number. */
  async readAfter(from: number): Promise<WordBatch> {
    const batch = await (this.#ahead?.from === from ? this.#ahead.batch : this.#read(from))
    const end = batch.numbers.at(-1)
    this.#ahead = undefined
    if (end === undefined || batch.isEnd || !hasReaderThreads(this.tenant.place)) return batch
    this.#ahead = { from: end, batch: this.#read(end) }
    this.#ahead.batch.catch(() => {}) // the next `readAfter` gets the error
    return batch
  }

  async #read(from: number): Promise<WordBatch> {
    const { db, place } = this.tenant
    if (!hasReaderThreads(place)) return readWords(db, this.model, from, ENTITIES_PER_READ)
    const args = [this.model.key, versionOf(this.model), `${from}`]
    const read = {
      name: 'words',
      place,
      actor: undefined,
      args,
      isStreamed: false,
      url: 'http://localhost/',
      headers: [],
    }
    try {
      return (await (await readInThread(read, this.signal)).json()) as WordBatch
    } catch (error) {
      if (!(error instanceof ThreadFailed)) throw error
      return readWords(db, this.model, from, ENTITIES_PER_READ)
    }
  }
}

/** Reads words in a reader thread. The arguments are the blueprint, its version, and the number. */
export async function readWordsHere(tenant: Tenant, [key, version, from]: string[]): Promise<WordBatch> {
  const model = await getModel(tenant, key!)
  if (versionOf(model) !== version) throw new Error('The thread knows another version of the blueprint.')
  return readWords(tenant.db, model, Number(from), ENTITIES_PER_THREAD_READ)
}

const versionOf = ({ _id, version, form }: Model) => `${_id} ${version} ${form}`

type EntityRow = [...WordRow, blueprint: string, state: string]

async function readWords(db: Db, model: Model, from: number, limit: number): Promise<WordBatch> {
  // All blueprints, because SQLite would sort all entities of one blueprint for each read.
  const next = `select ${getWordColumns(model).join(', ')}, e.blueprint, ${STATE_SQL} from entities e
    where e.seq > ? order by e.seq limit ?`
  const rows = (await db.query(next, [from, limit])) as EntityRow[]
  const isOwn = ([, , , code]: EntityRow) => code === model.code
  const batch = takeWithinSize(rows, MAX_BYTES_PER_READ, (row) => (isOwn(row) ? Number(row[1]) : 0))
  const own = batch.filter(isOwn)
  const states = new Map(own.map(([seq, , , , state]) => [Number(seq), state]))
  const words: WordBatch['words'] = []
  const documents = own.map(([seq, size, document]): WordRow => [seq, size, document])
  await readDocuments(db, model, documents, (seq, document) =>
    words.push([seq, states.get(seq)!, toSearchTerms(model, JSON.parse(document))]),
  )
  return {
    words,
    numbers: batch.map(([seq]) => Number(seq)),
    isEnd: batch.length === rows.length && rows.length < limit,
  }
}
