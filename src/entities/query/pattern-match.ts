import { isTruncated, textKey, truncatedPrefix } from '../../blueprints/fields/index-key-codec'
import type { Db } from '../../storage/port'
import { extractDocumentJson, shownInForceSql } from '../store/serializer'
import { fragment } from '../store/sql-fragments'
import { type LikePattern, matchesPattern, matchesPrefix } from './like-pattern'
import type { FieldTarget } from './sql-conditions'
import type { Target } from './target'

/** Returns whether an index key matches, or undefined when this depends on the end of a text that the key lacks. */
export function matchesKey(target: Target, pattern: LikePattern, key: string): boolean | undefined {
  const text = toText(target, key)
  if (target.at === 'column' || !isTruncated(text)) return matchesPattern(pattern, text)
  return matchesPrefix(pattern, truncatedPrefix(text)) || undefined
}

/**
 * Returns whether an index key matches. A long text is truncated in its key, so it is read from the entity with this
 * number, or else from any that has it by the index.
 */
export const isMatch = (
  db: Db,
  target: Target,
  pattern: LikePattern,
  key: string,
  entity?: number,
): boolean | Promise<boolean> =>
  matchesKey(target, pattern, key) ??
  matchesWholeText(db, target as FieldTarget, pattern, { key, text: toText(target, key), entity })

const toText = (target: Target, key: string) => (target.at === 'field' && target.path ? key.slice(1) : key)

async function matchesWholeText(
  db: Db,
  { field, path }: FieldTarget,
  pattern: LikePattern,
  { key, text, entity }: { key: string; text: string; entity?: number },
) {
  const byKey = 'entity_index i join entities e on e.seq = i.entity where i.field = ? and i.path = ? and i.value = ?'
  const holder =
    entity === undefined ? fragment(byKey, field.number, path, key) : fragment('entities e where e.seq = ?', entity)
  const [row] = await db.query(`select ${shownInForceSql('e.')} from ${holder.sql} limit 1`, holder.params)
  await db.yieldToOthers()
  return (
    !!row && matchesPattern(pattern, findLongText(JSON.parse(extractDocumentJson(row[0] as string))[field.key], text))
  )
}

/** Returns the text with this index key from anywhere in a value; empty when there is none. */
export function findLongText(value: unknown, key: string): string {
  const queue = [value]
  for (const item of queue) {
    if (typeof item === 'string' && textKey(item) === key) return item
    if (item !== null && typeof item === 'object') queue.push(...Object.values(item))
  }
  return ''
}
