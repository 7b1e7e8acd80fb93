import { and, type Part, part } from './conditions'
import type { Source } from './members'
import { isExact, type Place, type Term, termsOf } from './order'
import type { Condition, Target } from './query'
import { everything, type Scan } from './scans'
import { type Asked, type Stretch, select } from './select'
import { bounds } from './sizes'

/** An index in the order of what is first asked for, and the conditions that all its rows meet. */
export type Walk = { source: Source; covered: Condition[]; of?: Target }

/** A group of one value which is too large to be sorted: the whole page is in it, or else only its beginning is. */
export type Group = { value: string | number; whole: boolean }

/**
 * What is found near the beginning of an order, going through so many rows at most and asking each entity; nothing where
 * that are too few; a group where very many agree in what comes first, but more is to be ordered by.
 */
export async function walk(
  asked: Asked,
  { source, covered }: Walk,
  stretch: Stretch,
): Promise<unknown[][] | Group | undefined> {
  const { db, model, query, columns, first } = asked
  const { limit, skip, place } = stretch
  if (!limit) return []
  const need = limit + skip
  if (need > 2 * bounds.stretch || place?.[0] === null) return
  const all = everything(model)
  const [term, ...terms] = termsOf(query.order, all.time, first) as [Term, ...Term[]]
  const exact = isExact(query.order, terms.at(-1)!)
  const from = place ? beginningAt(source, term, place, exact) : source
  const ask = (source: Source, size: number) => {
    const rows = inOrder(source, `${source.by[0]} as value, ${source.entity} as seq`, term)
    const found: Scan = {
      ...all,
      covered,
      from: `(${rows.sql} limit ?) as n cross join entities e`,
      where: part('e.seq = n.seq'),
      given: [...rows.params, size],
    }
    const { sql, params } = select(asked, found, [{ ...term, of: part('n.value') }, ...terms], stretch)
    return db.ask(sql, params)
  }
  const most = bounds.stretch + 4 * need
  // Where nearly all match, each entity asked in vain would cost as much as one that is shown; but groups have to be seen.
  for (const size of [...(exact ? [1.2 * need] : []), need + most / 8, most].map(Math.ceil)) {
    const rows = await ask(from, size)
    if (rows.length < limit) continue
    if (exact) return rows
    const [start, end] = [rows[0]![columns.length], rows.at(-1)![columns.length]] as [string, string]
    const { sql, params } = inOrder(from, from.by[0]!, term)
    const [cut] = await db.ask(`${sql} limit 1 offset ?`, [...params, size - 1])
    if (!cut || cut[0] !== end) return rows
    // The rest of a group may come before what was found of it.
    const group = { ...from, where: and([from.where, part(`${from.by[0]} = ?`, end)]) }
    const [more] = await db.ask(`select 1 from ${group.from} where ${group.where.sql} limit 1 offset ?`, [
      ...group.where.params,
      bounds.few,
    ])
    return more ? { value: end, whole: start === end && !skip } : ask(from, size + bounds.few)
  }
}

function inOrder({ from, where, by }: Source, columns: string, { descending }: Term): Part {
  const order = by.map((one) => `${one} ${descending ? 'desc' : 'asc'}`).join(', ')
  return part(`select ${columns} from ${from} where ${where.sql} order by ${order}`, ...where.params)
}

/** Those that were passed are left out by the index as far as it can tell. */
function beginningAt(source: Source, { descending }: Term, place: Place, exact: boolean): Source {
  const sign = descending ? '<' : '>'
  const past =
    exact && place.length === source.by.length
      ? part(`(${source.by.join(', ')}) ${sign} (${place.map(() => '?').join(', ')})`, ...place)
      : part(`${source.by[0]} ${sign}= ?`, place[0])
  return { ...source, where: and([source.where, past]) }
}
