import { sha256 } from '../../core/crypto'

const MAX_PATH_CHARACTERS = 200
/** The end of the path of entities without a value of the sort field. */
const WITHOUT_ORDER = '/~2'

/**
 * Returns the path of a compound index that has the entities with these index keys, in the order of its parts. With
 * `isWithout`, of those that lack the value that the index sorts by.
 */
export function toCompoundPath(keys: string[], isWithout = false): string {
  const path = keys.map((key) => key.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')
  // The order of paths does not matter, and the index takes no long ones.
  return (path.length > MAX_PATH_CHARACTERS ? `~3${sha256(path)}` : path) + (isWithout ? WITHOUT_ORDER : '')
}
