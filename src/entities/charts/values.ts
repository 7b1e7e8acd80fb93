import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import type { Doc } from '../document'
import { partKey } from '../keys'
import type { Resolved } from '../query'
import { docOf, shownIn } from '../wire'
import type { Grouping, Name } from './grouping'
import type { Group } from './tally'

/** Whether an entity may have several values there, which the database gives as a list in JSON. */
export const isMany = ({ target }: Resolved) => target.at === 'field' && !target.single

/** The keys of the values that the database gave. */
export function keysIn(resolved: Resolved, given: string | number | null): string[] {
  if (given === null) return []
  return isMany(resolved) ? JSON.parse(given as string) : [`${given}`]
}

/** The keys of a property's values in what is kept of an entity, each as often as it is there. */
export const keysOfDocument = (resolved: Resolved, shown: string) => valuesIn(resolved, shown).map(([key]) => key)

type Keyed = [key: string, value: Name]

function valuesIn({ target, kind }: Resolved, shown: string): Keyed[] {
  if (target.at !== 'field') return []
  const value = (JSON.parse(docOf(shown)) as Doc)[target.field.key]
  if (value === undefined) return []
  if (kind) return [value].flat().map((one) => [kind.key!(one), one as Name])
  return [...partsAt(target.path, value)]
}

/** The parts of an object that have this path, which may lead through lists. */
function* partsAt(wanted: string, value: unknown, path = ''): Generator<Keyed> {
  if (Array.isArray(value)) for (const one of value) yield* partsAt(wanted, one, path)
  else if (value !== null && typeof value === 'object') {
    for (const [key, part] of Object.entries(value))
      if (key) yield* partsAt(wanted, part, path ? `${path}.${key}` : key)
  } else if (value !== null && path === wanted) yield [partKey(value as Name), value as Name]
}

const AT_ONCE = 100 // entities read by one statement

/** What groups are called; where their keys do not tell it as it was written, as an entity has it. */
export async function namesOf(
  db: Db,
  model: Model,
  by: Resolved,
  grouping: Grouping,
  groups: Group[],
): Promise<Name[]> {
  const names = new Map(groups.map((group) => [group, grouping.nameOf(group.place)]))
  const cut = groups.filter(({ place }) => grouping.isCut(place))
  for (let at = 0; at < cut.length; at += AT_ONCE) {
    const some = cut.slice(at, at + AT_ONCE)
    const numbers = some.map(({ first }) => first)
    const sql = `select seq, ${shownIn(model, '')} from entities where seq in (${numbers.map(() => '?').join(', ')})`
    const shown = new Map((await db.ask(sql, numbers)).map(([seq, text]) => [Number(seq), text as string]))
    for (const group of some) {
      const text = shown.get(group.first)
      const found = text && valuesIn(by, text).find(([key]) => key === group.key)
      if (found) names.set(group, found[1])
    }
  }
  return [...names.values()]
}
