import { sha256 } from '../../core/crypto'

/** A path with at most so many characters is never replaced by its hash. */
export const MAX_WHOLE_PATH_CHARACTERS = 100
const MAX_PATH_UNITS = 2 * MAX_WHOLE_PATH_CHARACTERS
/** What the path of the entities without a value of the sort field ends with. */
const WITHOUT_ORDER = '/~2'

/**
 * Returns the path of a compound index that has the entities with these index keys, in the order of its parts. With
 * `isWithout`, of those that lack the value that the index sorts by.
 */
export function toCompoundPath(keys: string[], isWithout = false): string {
  const path = keys.map((key) => key.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')
  // The order of paths does not matter, and the index takes no long ones.
  return (path.length > MAX_PATH_UNITS ? `~3${sha256(path)}` : path) + (isWithout ? WITHOUT_ORDER : '')
}

/** Returns the SQL for the path, as long as that is short, of the columns with the index keys and with the value to sort by. */
export function compoundPathSql(keys: string[], sorted: string): string {
  const escaped = keys.map((key) => `replace(replace(${key}, '~', '~0'), '/', '~1')`)
  return `${escaped.join(" || '/' || ")} || case when ${sorted} is null then '${WITHOUT_ORDER}' else '' end`
}
