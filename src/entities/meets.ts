import { isCut } from '../blueprints/fields/keys'
import type { Model } from '../blueprints/model'
import type { Doc } from './document'
import { longText } from './fitting'
import type { Keys } from './keys'
import { fits as fitsPattern } from './like'
import type { Condition, Like, Query, Target, Test } from './query'
import type { System } from './wire'
import { termsOf } from './words'

/** An entity to be judged here, by the same texts as the database compares. */
export type Judged = { system: System; keys: Keys; doc: Doc }

/** Whether a list with this query would have the entity: what `conditions.ts` says in SQL, of a single one. */
export const meets = (
  model: Model,
  { conditions, likes, search }: Pick<Query, 'conditions' | 'likes' | 'search'>,
  entity: Judged,
) =>
  conditions.every((condition) => holdsFor(condition, entity)) &&
  likes.every((like) => isLike(like, entity)) &&
  (search === undefined || hasWords(search, termsOf(model, entity.doc)))

/** Whether a condition holds for an entity with these values. */
export function holdsFor(condition: Condition, { system, keys }: Pick<Judged, 'keys'> & Partial<Judged>): boolean {
  const { target } = condition
  const found = valuesOf(target, keys, system)
  if (condition.is === 'present' || condition.is === 'absent') {
    // An empty list is a value, but no part of an object.
    const has = target.at === 'field' && !target.path ? keys[target.label] !== undefined : found.length > 0
    return has === (condition.is === 'present')
  }
  return fits(condition, found)
}

function valuesOf(target: Target, keys: Keys, system?: System): (string | number)[] {
  if (target.at === 'field') return [keys[target.label] ?? []].flat()
  return [system?.[COLUMNS[target.column]] ?? []].flat()
}

/** Whether one of the texts of an entity fits a pattern. */
function isLike({ target, pattern }: Like, { system, keys, doc }: Judged): boolean {
  const values = valuesOf(target, keys, system).map(String)
  if (target.at === 'column') return values.some((text) => fitsPattern(pattern, text))
  const texts = target.path ? values.filter((key) => key.startsWith('s')).map((key) => key.slice(1)) : values
  const whole = (text: string) => (isCut(text) ? longText(doc[target.field.key], text) : text)
  return texts.some((text) => fitsPattern(pattern, whole(text)))
}

const COLUMNS = {
  'e._id': '_id',
  'e.identifier': 'identifier',
  'e."user"': 'user',
  'e.workspace': 'workspace',
  'e.created': 'created',
  'e.updated': 'updated',
} as const

function fits(test: Test, found: (string | number)[]): boolean {
  if (test.is === 'between') {
    const { from, to } = test
    const after = (value: string | number) => !from || order(value, from.value) >= (from.open ? 1 : 0)
    const before = (value: string | number) => !to || order(value, to.value) <= (to.open ? -1 : 0)
    return found.some((value) => after(value) && before(value))
  }
  return found.some((value) => test.values.includes(value)) === (test.is === 'in')
}

/** As the engines order texts: by their bytes. */
const order = (one: string | number, other: string | number) =>
  typeof one === 'number' ? Math.sign(one - Number(other)) : Buffer.compare(Buffer.from(one), Buffer.from(`${other}`))

/** Whether words answer the question that `matchOf` makes. */
function hasWords(search: string, terms: string): boolean {
  const words = new Set(terms.split(' '))
  const has = (asked: string) =>
    asked.endsWith('*') ? words.values().some((word) => word.startsWith(asked.slice(0, -1))) : words.has(asked)
  return !!search && search.split(' AND ').every((part) => part.slice(1, -1).split(' OR ').some(has))
}
