import { mergeIncrementally } from '../../storage/full-text-merges'
import type { DeferredWrite, Tx } from '../../storage/port'

/**
 * SQL for the number up to which the entities of a blueprint are in the full-text index; its parameter is the blueprint's key.
 * A write of such an entity indexes its words; the index build adds the others.
 */
export const INDEXED_UP_TO = `(select case when w.done < w.upto then w.done else ${Number.MAX_SAFE_INTEGER} end
  from search_progress w where w.blueprint = ?)`

/** Returns the number up to which the entities of a blueprint are in the full-text index; 0 for none. */
export const readIndexedUpTo = async (tx: Pick<Tx, 'query'>, blueprint: string): Promise<number> =>
  Number((await tx.query(`select ${INDEXED_UP_TO}`, [blueprint]))[0]![0] ?? 0)

/** Replaces the words of entities, at the end of the transaction. */
export function replaceTerms(tx: Tx, entities: (readonly [seq: number, terms: string])[]) {
  writeLater(tx, entities, false)
}

/** Adds the words of entities that have none yet, at the end of the transaction. */
export function addTerms(tx: Tx, entities: (readonly [seq: number, terms: string])[]) {
  writeLater(tx, entities, true)
}

function writeLater(tx: Tx, entities: (readonly [seq: number, terms: string])[], fresh: boolean) {
  for (const [seq, terms] of entities) {
    tx.defer(writeTerms, seq, { terms, fresh })
    mergeIncrementally(tx, 'search_words', seq, terms)
  }
}

/** Removes the words of entities at once, because a new entity may reuse the number. */
export function removeTerms(tx: Tx, entities: number[]) {
  for (const seq of entities) {
    tx.defer(writeTerms, seq, undefined)
    mergeIncrementally(tx, 'search_words', seq, undefined)
  }
  return tx.executeMany(
    DELETE_TERMS,
    entities.map((seq) => [seq]),
  )
}

const DELETE_TERMS = 'delete from search_words where rowid = ?'

type TermsEntry = { terms: string; fresh: boolean }

/**
 * Writes all words of a transaction together, because SQLite flushes them to its pages at the end of each savepoint.
 */
const writeTerms: DeferredWrite<number, TermsEntry | undefined> = async ({ executeMany, isRemote }, entries) => {
  const added = entries.flatMap(([seq, terms]) => (terms ? [{ seq, ...terms }] : []))
  const replaced = added.filter(({ fresh }) => !fresh).map(({ seq }) => [seq])
  const removal = executeMany(DELETE_TERMS, replaced)
  // Many are removed by several statements, the last of which could come after the insertion.
  if (!isRemote || replaced.length > 1) await removal
  const insertion = executeMany(
    'insert into search_words (rowid, words) values (?, ?)',
    added.map(({ seq, terms }) => [seq, terms]),
  )
  await Promise.all([removal, insertion])
}
