import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import type { ResolvedName } from '../query/target'
import type { Doc } from '../store/doc'
import { toPartKey } from '../store/index-keys'
import { extractDocumentJson, shownColumnSql } from '../store/serializer'
import type { Group, Grouping, GroupName } from './grouping'

/** Returns whether an entity may have several values, which the database returns as a JSON list. */
export const isMultiValued = ({ target }: ResolvedName) => target.at === 'field' && !target.single

/** Returns the keys in a value that was read from the database. */
export function parseKeys(resolved: ResolvedName, value: string | number | null): string[] {
  if (value === null) return []
  return isMultiValued(resolved) ? JSON.parse(value as string) : [`${value}`]
}

/** Returns the keys of a property's values in the stored JSON of an entity, including repeated ones. */
export const readDocumentKeys = (resolved: ResolvedName, shown: string) =>
  readValues(resolved, shown).map(([key]) => key)

type KeyedValue = [key: string, value: GroupName]

function readValues({ target, kind }: ResolvedName, shown: string): KeyedValue[] {
  if (target.at !== 'field') return []
  const value = (JSON.parse(extractDocumentJson(shown)) as Doc)[target.field.key]
  if (value === undefined) return []
  if (kind) return [value].flat().map((one) => [kind.toIndexKey!(one), one as GroupName])
  return [...partsAtPath(target.path, value)]
}

/** Yields the values of an object at a path, which may lead through lists. */
function* partsAtPath(wanted: string, value: unknown, path = ''): Generator<KeyedValue> {
  if (Array.isArray(value)) for (const one of value) yield* partsAtPath(wanted, one, path)
  else if (value !== null && typeof value === 'object') {
    for (const [key, part] of Object.entries(value))
      if (key) yield* partsAtPath(wanted, part, path ? `${path}.${key}` : key)
  } else if (value !== null && path === wanted) yield [toPartKey(value as GroupName), value as GroupName]
}

const ENTITIES_PER_READ = 100 // entities read by one statement

/** Returns the names of groups; a value whose key loses its notation is read from an entity of the group. */
export async function readGroupNames(
  db: Db,
  model: Model,
  by: ResolvedName,
  grouping: Grouping,
  groups: Group[],
): Promise<GroupName[]> {
  const names = new Map(groups.map((group) => [group, grouping.toName(group.position)]))
  const unnamed = groups.filter(({ position }) => grouping.losesNotation(position))
  for (let at = 0; at < unnamed.length; at += ENTITIES_PER_READ) {
    const chunk = unnamed.slice(at, at + ENTITIES_PER_READ)
    const numbers = chunk.map(({ first }) => first)
    const sql = `select seq, ${shownColumnSql(model, '')} from entities where seq in (${numbers.map(() => '?').join(', ')})`
    const shown = new Map((await db.query(sql, numbers)).map(([seq, text]) => [Number(seq), text as string]))
    for (const group of chunk) {
      const text = shown.get(group.first)
      const match = text && readValues(by, text).find(([key]) => key === group.key)
      if (match) names.set(group, match[1])
    }
  }
  return [...names.values()]
}
