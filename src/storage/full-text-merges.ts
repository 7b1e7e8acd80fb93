import type { DeferredWrite, Executor, Tx } from './port'

type FullTextTable = 'search_words' | 'search_chunks'

const PAGES_PER_MERGE = 4
const LENGTH_PER_MERGE = 4_000 // characters of text; less frequent merges would let segments pile up
const LENGTH_PER_REMOVAL = 100

/**
 * Merges a few pages of a full-text index at the end of a transaction, in proportion to the text that it adds. FTS5's own
 * merges, which a migration turned off, hold the writer for hundreds of pages. `text` is undefined for a removal.
 */
export function mergeIncrementally(tx: Tx, table: FullTextTable, key: number, text: string | undefined) {
  if (tx.wordIndex === 'fts5') tx.defer(merges[table], key, text?.length ?? LENGTH_PER_REMOVAL)
}

const merges = { search_words: createMerge('search_words'), search_chunks: createMerge('search_chunks') }

function createMerge(table: FullTextTable): DeferredWrite<number, number> {
  const unmerged = new WeakMap<Executor, number>()
  return async (executor, entries) => {
    const length = entries.reduce((sum, [, added]) => sum + added, unmerged.get(executor) ?? 0)
    unmerged.set(executor, length % LENGTH_PER_MERGE)
    const pages = Math.floor(length / LENGTH_PER_MERGE) * PAGES_PER_MERGE
    if (pages) await executor.query(`insert into ${table} (${table}, rank) values ('merge', ?)`, [pages])
  }
}
