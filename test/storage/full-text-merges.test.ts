import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { tenantMigrations } from '../../migrations'
import { indexChunks } from '../../src/ai/knowledge/full-text'
import { addTerms, replaceTerms } from '../../src/entities/search/search-terms'
import { DatabasePool } from '../../src/storage/pool'
import type { Tx } from '../../src/storage/port'
import { freshFolder, sqlite } from './engines'

const WRITES = 400
const ROWS_PER_WRITE = 10
const WORDS_PER_ROW = 40
const LONGEST_WRITE = 128 * 1024 // bytes; a merge of FTS5's own writes 400 KiB and more

/** Words of a language: a few are common, most are rare. */
const drawWord = () => `f2w${Math.floor(3_000 ** Math.random())}`
const drawText = () => Array.from({ length: WORDS_PER_ROW }, drawWord).join(' ')
const drawRows = (write: number) =>
  Array.from({ length: ROWS_PER_WRITE }, (_, n): [number, string] => [write * ROWS_PER_WRITE + n + 1, drawText()])

type Kind = [title: string, table: string, write: (tx: Tx, rows: [number, string][]) => unknown]
const kinds: Kind[] = [
  ['new entities', 'search_words', addTerms],
  [
    'changed entities',
    'search_words',
    (tx, rows) =>
      replaceTerms(
        tx,
        rows.map(([seq, text]) => [1 + (seq % 2_000), text]),
      ),
  ],
  ['chunks of files', 'search_chunks', (tx, rows) => indexChunks(tx, 1, rows)],
]

test.each(kinds)('words of %s are merged by writes that stay short, into few segments', async (_, table, write) => {
  const folder = freshFolder()
  await using pool = {
    storage: new DatabasePool(sqlite({ folder }), { openCount: 2, deadline: 5_000 }),
    [Symbol.asyncDispose]: () => pool.storage.close(),
  }
  const store = pool.storage.getStore({ tenant: 'words', file: 'words.db' }, tenantMigrations)
  const lengths: number[] = []
  const readLength = () => statSync(join(folder, 'words.db-wal')).size
  for (let n = 0; n < WRITES; n++) {
    const before = n && readLength()
    await store.write(async (tx) => void (await write(tx, drawRows(n))))
    if (n) lengths.push(readLength() - before)
  }
  expect(Math.max(...lengths)).toBeGreaterThan(0)
  expect(Math.max(...lengths)).toBeLessThan(LONGEST_WRITE)
  const [[segments] = []] = await store.db.query(`select count(distinct segid) from ${table}_idx`)
  expect(segments).toBeLessThan(24)
})
