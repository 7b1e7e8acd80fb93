import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import type { Literal } from '../query/literal-scan'
import type { Doc } from '../store/doc'
import { documentSql, extractDocumentJson } from '../store/serializer'
import { fragment, oneOf, takeWithinSize } from '../store/sql-fragments'
import { hasWord, isPlain, matchesWords, toSearchedWords, toSearchTerms } from './tokenizer'

/** Characters of a document from which on the limit of its terms may leave words out. */
const LONG_DOCUMENT = 50_000
const ESCAPED_LETTER = '\\u' // how JSON begins a letter that does not stand in it as it is
const MAX_BYTES_AT_ONCE = 4_096 // bytes of a document that is read together with its entity's number
const MAX_BYTES_PER_READ = 1 << 20 // bytes of larger documents read by one statement, unless a single one is larger

/** Returns the columns of an entity (`e`) that `findWithWords` needs. */
export function getWordColumns(model: Model): string[] {
  const document = documentSql(model)
  return [
    'e.seq',
    `octet_length(${document})`,
    `case when octet_length(${document}) <= ${MAX_BYTES_AT_ONCE} then ${document} end`,
  ]
}

/** The values of `getWordColumns`. */
export type WordRow = [seq: number, size: number, document: string | null]

/** A test of whether the JSON of a document contains words. */
export type WordTest = (document: string) => boolean

/** Returns which of the entities contain the words. `use` gets the document of each that does. */
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

/** Calls `use` with the JSON of each entity's document; reads the large ones in bounded steps. */
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

/** Returns the longest of the words if documents of plain letters have it as it is. */
export function getWordLiteral(model: Model, search: string): Literal[] {
  const words = toSearchedWords(search).map(({ word }) => word)
  const [part] = words.every(isPlain) ? words.sort((one, other) => other.length - one.length) : []
  if (!part) return []
  return [{ text: fragment(documentSql(model)), part, maxBytes: MAX_BYTES_AT_ONCE, hiddenBy: ESCAPED_LETTER }]
}

/**
 * Returns a test of whether the JSON of a document contains the words of a full-text expression. It finds the same as
 * the index of words, and mostly without parsing the document.
 */
export function createWordTest(model: Model, search: string): WordTest {
  const words = toSearchedWords(search).map(({ fields, ...word }) => {
    const keys = model.fields.filter(({ number }) => fields.includes(number)).map(({ key }) => key)
    return { ...word, keys }
  })
  // A word has only letters, digits and marks, which are no operators of a regular expression.
  const patterns = words.map(({ word }) => new RegExp(word, 'i'))
  const arePlain = words.every(({ word }) => isPlain(word))
  return (document) => {
    // The words of a plain document stand in its JSON as they are, unless a letter is escaped.
    if (isPlain(document) && !document.includes(ESCAPED_LETTER))
      if (!arePlain || !patterns.every((pattern) => pattern.test(document))) return false
    const doc = JSON.parse(document) as Doc
    if (document.length > LONG_DOCUMENT) return matchesWords(search, new Set(toSearchTerms(model, doc).split(' ')))
    return words.every(({ word, isPrefix, keys }) =>
      keys.some((key) => doc[key] !== undefined && hasWord([doc[key]].flat().join(' '), word, isPrefix)),
    )
  }
}
