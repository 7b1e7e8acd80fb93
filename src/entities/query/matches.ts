import { isTruncated } from '../../blueprints/fields/index-key-codec'
import type { Model } from '../../blueprints/model'
import { matchesWords } from '../search/tokenizer'
import type { Doc } from '../store/doc'
import type { IndexKeys } from '../store/index-keys'
import type { EntityHeader } from '../store/serializer'
import { matchesPattern } from './like-pattern'
import { findLongText } from './pattern-match'
import type { Query } from './query-parser'
import { type Condition, hasLongBound, type LikeCondition, type Predicate, type Target } from './target'
import { compareValues } from './value-order'

/** An entity that is matched in memory, by the keys that the database compares, and the search terms of its texts. */
export type MatchableEntity = {
  system: EntityHeader
  keys: IndexKeys
  doc: Doc
  searchTerms(model: Model): Set<string>
}

/**
 * Returns whether a list with this query would contain the entity; the counterpart of `sql-conditions.ts` in memory.
 */
export const matchesQuery = (
  model: Model,
  { conditions, likes, search }: Pick<Query, 'conditions' | 'likes' | 'search'>,
  entity: MatchableEntity,
) =>
  conditions.every((condition) => matchesCondition(condition, entity)) &&
  likes.every((like) => matchesLike(like, entity)) &&
  (search === undefined || matchesWords(search, entity.searchTerms(model)))

/** Returns whether a condition holds for an entity with these values. */
export function matchesCondition(
  condition: Condition,
  { system, keys, doc }: Pick<MatchableEntity, 'keys'> & Partial<MatchableEntity>,
): boolean {
  const { target } = condition
  const values = getValues(target, keys, system)
  if (condition.is === 'between' && hasLongBound(condition) && target.at === 'field')
    return matchesPredicate(condition, [(doc?.[target.field.key] ?? []) as string].flat())
  if (condition.is === 'present' || condition.is === 'absent') {
    // An empty list counts as a value of a field, but not of a path into an object.
    const has = target.at === 'field' && !target.path ? keys[target.label] !== undefined : values.length > 0
    return has === (condition.is === 'present')
  }
  return matchesPredicate(condition, values)
}

function getValues(target: Target, keys: IndexKeys, system?: EntityHeader): (string | number)[] {
  if (target.at === 'field') return [keys[target.label] ?? []].flat()
  return [system?.[HEADER_KEYS[target.column]] ?? []].flat()
}

/** Returns whether one of the texts of an entity matches a pattern. */
function matchesLike({ target, pattern }: LikeCondition, { system, keys, doc }: MatchableEntity): boolean {
  const values = getValues(target, keys, system).map(String)
  if (target.at === 'column') return values.some((text) => matchesPattern(pattern, text))
  const texts = target.path ? values.filter((key) => key.startsWith('s')).map((key) => key.slice(1)) : values
  const toWholeText = (text: string) => (isTruncated(text) ? findLongText(doc[target.field.key], text) : text)
  return texts.some((text) => matchesPattern(pattern, toWholeText(text)))
}

const HEADER_KEYS = {
  'e._id': '_id',
  'e.identifier': 'identifier',
  'e."user"': 'user',
  'e.workspace': 'workspace',
  'e.created': 'created',
  'e.updated': 'updated',
} as const

function matchesPredicate(test: Predicate, values: (string | number)[]): boolean {
  if (test.is === 'between') {
    const { from, to } = test
    const after = (value: string | number) =>
      !from || compareValues(value, from.text ?? from.value) >= (from.open ? 1 : 0)
    const before = (value: string | number) => !to || compareValues(value, to.text ?? to.value) <= (to.open ? -1 : 0)
    return values.some((value) => after(value) && before(value))
  }
  return values.some((value) => test.values.includes(value)) === (test.is === 'in')
}
