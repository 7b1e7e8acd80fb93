import type { Actor } from '../../accounts/actors'
import { isReserved } from '../../blueprints/definition-validation'
import type { Model } from '../../blueprints/model'
import { mayReadField } from '../../blueprints/permissions'
import type { Scope } from '../../blueprints/shapes'
import { isFlag, isTrue } from '../../core/shapes'
import { parseNames } from './name-list'

/** The related entities that a query embeds: paths of relations, and sets of entities that refer to the result. */
export type PopulateOptions = { populate: true | string[][]; sets: ReverseRequest[] }
export type ReverseRequest = { key: string; blueprint: string; scope: Scope }

const MAX_DEPTH = 3
const MAX_REVERSE_RELATIONS = 10
const SCOPES: readonly string[] = ['user', 'workspace', 'tenant'] satisfies Scope[]

/** Parses `$populate` and `$outerPopulate`, and checks what can be checked without other blueprints. */
export function parsePopulate(
  model: Model,
  actor: Actor | undefined,
  options: Map<string, string>,
  addError: (path: string, message: string) => void,
): PopulateOptions | undefined {
  const related = { populate: parsePaths(), sets: parseReverse() }
  return related.populate === true || related.populate.length || related.sets.length ? related : undefined

  function parsePaths(): true | string[][] {
    const text = options.get('$populate') ?? 'false'
    if (isFlag(text)) return isTrue(text) || []
    const paths = parseNames(text).map((path) => path.split('.'))
    for (const path of paths)
      if (path.length > MAX_DEPTH)
        addError('$populate', `"${path.join('.')}" is nested more than ${MAX_DEPTH} relations deep.`)
    return paths
  }

  function parseReverse() {
    const sets: ReverseRequest[] = []
    for (const text of parseNames(options.get('$outerPopulate') ?? '')) {
      const [, key, blueprint, scope] = /^([a-zA-Z][a-zA-Z0-9_]{0,62}):([^:]+):(\w+)$/.exec(text) ?? []
      const field = key && model.field.get(key)
      if (!key || !blueprint || !scope || !SCOPES.includes(scope))
        addError(
          '$outerPopulate',
          `"${text}" must have the form name:blueprint:scope, where scope is user, workspace or tenant.`,
        )
      else if (isReserved(key) || (field && mayReadField(field, actor)))
        addError('$outerPopulate', `"${key}" is already a property of the entity. Choose another name.`)
      else if (sets.some((set) => set.key === key)) addError('$outerPopulate', `"${key}" is given twice.`)
      else sets.push({ key, blueprint, scope: scope as Scope })
    }
    if (sets.length > MAX_REVERSE_RELATIONS)
      addError('$outerPopulate', `At most ${MAX_REVERSE_RELATIONS} sets are allowed.`)
    return sets
  }
}
