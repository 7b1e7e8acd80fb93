import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { FIELD_SEPARATOR, TERM_SEPARATOR } from '../search/tokenizer'
import { getCached, readUntilChange, setCached } from './read-cache'

// The range of characters that may continue a word.
const [FIRST_CHARACTER, LAST_CHARACTER] = ['0', '\u{10ffff}']
const MAX_LOOKED_UP = 50 // terms of a search
/** How long a word that some entity contains counts as known (ms). Once none does, its search takes longer, but is right. */
const KNOWN_TTL_MS = 60_000

/**
 * Drops the terms of a search that no entity contains, because they take as long as others. Turns a prefix into a plain word when
 * no longer word begins with it, because a prefix search collects all matches first.
 */
export const keepKnownTerms = async (db: Db, model: Model, search: string): Promise<string> => {
  if (db.wordIndex === 'gin') return search
  return readUntilChange(db, model, `terms ${search}`, async () => {
    const words = search.split(TERM_SEPARATOR).map((word) => word.slice(1, -1).split(FIELD_SEPARATOR))
    if (!search || words.flat().length > MAX_LOOKED_UP) return search
    const known: string[] = []
    for (const terms of words) {
      const kept = (await Promise.all(terms.map((term) => simplifyTerm(db, model, term)))).filter(
        (term) => term !== undefined,
      )
      known.push(`(${(kept.length ? kept : terms.slice(0, 1)).join(FIELD_SEPARATOR)})`)
    }
    return known.join(TERM_SEPARATOR)
  })
}

async function simplifyTerm(db: Db, model: Model, term: string): Promise<string | undefined> {
  const isKnown = async (from: string, to: string) => {
    const name = `known term ${from}`
    if ((getCached<number>(db, model, name) ?? 0) > performance.now()) return true
    const rows = await db.query('select 1 from search_vocabulary where term >= ? and term < ? limit 1', [from, to])
    if (rows.length) setCached(db, model, name, performance.now() + KNOWN_TTL_MS)
    return rows.length > 0
  }
  const word = term.endsWith('*') ? term.slice(0, -1) : term
  if (term !== word && (await isKnown(word + FIRST_CHARACTER, word + LAST_CHARACTER))) return term
  return (await isKnown(word, word + FIRST_CHARACTER)) ? word : undefined
}
