import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import type { Literal } from '../query/literal-scan'
import type { Doc } from '../store/doc'
import { documentSql, extractDocumentJson } from '../store/serializer'
import { fragment, oneOf, takeWithinSize } from '../store/sql-fragments'
import { hasWord, isAscii, matchesWords, toSearchedWords, toSearchTerms } from './tokenizer'

/** Longer documents (characters) may have more words than the index stores of them. */
const LONG_DOCUMENT = 50_000
const ESCAPED_LETTER = '\\u' // an escaped letter in JSON
const MAX_INLINE_BYTES = 4_096 // of a document that is read together with its entity's number
const MAX_BYTES_PER_READ = 1 << 20 // of larger documents, unless a single one is larger

/** Returns the columns of an entity (`e`) that `findWithWords` needs. */
export function getWordColumns(model: Model): string[] {
  const document = documentSql(model)
  return [
    'e.seq',
    `octet_length(${document})`,
    `case when octet_length(${document}) <= ${MAX_INLINE_BYTES} then ${document} end`,
  ]
}

/** The values of `getWordColumns`. */
export type WordRow = [seq: number, size: number, document: string | null]

/** A test of whether the JSON of a document contains words. */
export type WordTest = (document: string) => boolean

/** Returns the entities that contain the words. `use` gets the document of each. */
export async function findWithWords(
  db: Db,
  model: Model,
  test: WordTest,
  rows: WordRow[],
  use?: (seq: number, document: string) => void,
): Promise<Set<number>> {
  const found = new Set<number>()
  await readDocuments(db, model, rows, (seq, document) => {
    if (!test(document)) return
    found.add(seq)
    use?.(seq, document)
  })
  return found
}

/** Calls `use` with the JSON of each document, and reads large ones in bounded steps. */
export async function readDocuments(
  db: Db,
  model: Model,
  rows: WordRow[],
  use: (seq: number, document: string) => void,
) {
  for (const [seq, , stored] of rows) if (stored !== null) use(Number(seq), extractDocumentJson(stored))
  for (let large = rows.filter(([, , stored]) => stored === null); large.length; ) {
    const read = takeWithinSize(large, MAX_BYTES_PER_READ, ([, size]) => Number(size))
    large = large.slice(read.length)
    const { sql, params } = oneOf(
      'e.seq',
      read.map(([seq]) => seq),
    )
    const documents = await db.query(`select e.seq, ${documentSql(model)} from entities e where ${sql}`, params)
    for (const [seq, stored] of documents as [number, string][]) use(Number(seq), extractDocumentJson(stored))
    if (large.length) await db.yieldToOthers()
  }
}

/** Returns the longest word if all words are ASCII, because ASCII documents contain it unchanged. */
export function getWordLiteral(model: Model, search: string): Literal[] {
  const words = toSearchedWords(search).map(({ word }) => word)
  const [part] = words.every(isAscii) ? words.sort((one, other) => other.length - one.length) : []
  if (!part) return []
  return [{ text: fragment(documentSql(model)), part, maxBytes: MAX_INLINE_BYTES, hiddenBy: ESCAPED_LETTER }]
}

/**
 * Returns a test whether the JSON of a document contains the words of a full-text expression. It agrees with the full-text
 * index, and rarely parses the document.
 */
export function createWordTest(model: Model, search: string): WordTest {
  const words = toSearchedWords(search).map(({ fields, ...word }) => {
    const keys = model.fields.filter(({ number }) => fields.includes(number)).map(({ key }) => key)
    return { ...word, keys }
  })
  // Words need no escaping: they consist of letters, digits and marks.
  const patterns = words.map(({ word }) => new RegExp(word, 'i'))
  const arePlain = words.every(({ word }) => isAscii(word))
  return (document) => {
    // The JSON of an ASCII document contains its words unchanged, unless a letter is escaped.
    if (isAscii(document) && !document.includes(ESCAPED_LETTER))
      if (!arePlain || !patterns.every((pattern) => pattern.test(document))) return false
    const doc = JSON.parse(document) as Doc
    if (document.length > LONG_DOCUMENT) return matchesWords(search, new Set(toSearchTerms(model, doc).split(' ')))
    return words.every(({ word, isPrefix, keys }) =>
      keys.some((key) => doc[key] !== undefined && hasWord([doc[key]].flat().join(' '), word, isPrefix)),
    )
  }
}
