import type { Actor } from '../../accounts/actors'
import type { Model } from '../../blueprints/model'
import { badRequest, type FieldError } from '../../core/problem'
import { parseQuery, type Query, resolveName, unknownFieldMessage } from '../query/query-parser'
import type { ResolvedName } from '../query/target'
import { type Interval, intervals, isInterval } from './grouping'

/** The query of a chart: its entities, and the properties to group by and to sum. */
export type ChartQuery = { query: Query; by?: ResolvedName; sum?: ResolvedName; interval?: Interval }

/** How a kind of chart names the property to group by, and which parameter it requires. */
export type ParameterNames = { by: 'x' | 'groupBy'; needs: 'x' | 'sum' }

const DEFAULT_GROUP_LIMIT = 1_000 // groups per page

/**
 * Parses the query of a chart: its own parameters, and otherwise those of a list. `$limit` and `$skip` apply to groups.
 * @throws 400 for properties that are unknown to the caller or not suitable
 */
export function parseChartQuery(
  model: Model,
  actor: Actor | undefined,
  text: string,
  { by, needs }: ParameterNames,
): ChartQuery {
  const search = new URLSearchParams(text)
  const flaws: FieldError[] = []
  const addError = (path: string, message: string) => void flaws.push({ path, message })

  const [byName, sumName, interval] = [takeOption(by), takeOption('sum'), takeOption('interval')]
  const [groupField, sumField] = [resolveField(by, byName), resolveField('sum', sumName)]
  if (sumField && !sumField.kind?.exactSum) addError('sum', `"${sumName}" is not numeric, so it cannot be summed.`)
  if (interval !== undefined) {
    if (!isInterval(interval)) addError('interval', `interval must be one of: ${intervals.join(', ')}.`)
    else if (!byName) addError('interval', `interval requires a date field: ${by}=….`)
    else if (groupField && !groupField.kind?.toMillis)
      addError('interval', `"${byName}" is not a date, so it has no intervals.`)
  }
  if (flaws.length) badRequest(...flaws)
  if (!valuesOf('$limit').length) search.set('$limit', `${DEFAULT_GROUP_LIMIT}`)
  const query = parseQuery(model, actor, `${search}`)
  return { query, by: groupField, sum: sumField, interval: isInterval(interval) ? interval : undefined }

  /** As in a list, an empty value is ignored. */
  function valuesOf(name: string) {
    return search.getAll(name).filter((value) => value !== '' && value !== 'undefined')
  }

  /** Removes a chart parameter from the query, so that it is not read as a filter. */
  function takeOption(name: string): string | undefined {
    const [value, ...others] = valuesOf(name)
    search.delete(name)
    if (others.length) addError(name, `${name} may be given only once.`)
    return value
  }

  function resolveField(name: string, key: string | undefined): ResolvedName | undefined {
    if (key === undefined)
      return void (name === needs && addError(name, `${name} is required: use a field, such as ${name}=created.`))
    const resolved = resolveName(model, actor, key)
    if (!resolved) addError(name, unknownFieldMessage(model, actor, key))
    else if (typeof resolved === 'string') addError(name, resolved)
    // SQLite's JSON paths do not match names with these characters.
    else if (/["\\]/.test(key)) addError(name, `"${key}" contains characters that are not supported for grouping.`)
    else return resolved
  }
}
