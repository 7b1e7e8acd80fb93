import type { Actor } from '../../accounts/actors'
import type { Model } from '../../blueprints/model'
import { findNearestKey } from '../../core/nearest-key'
import { badRequest, type FieldError } from '../../core/problem'
import { INTERVALS, type Interval, type TimeZone } from '../../core/time-zone'
import { parseQuery, type Query, resolveName, unknownFieldMessage } from '../query/query-parser'
import type { ResolvedName } from '../query/target'
import * as errors from './chart-errors'
import { isInterval } from './grouping'

/** The query of a chart: its entities, and the properties to group by and to sum. */
export type ChartQuery = { query: Query; by?: ResolvedName; sum?: ResolvedName; interval?: Interval; zone: TimeZone }

/** How a kind of chart names the property to group by, and which parameter it requires. */
export type ParameterNames = { by: 'x' | 'groupBy'; needs: 'x' | 'sum' }

/** Returns the zone that a parameter names, or that of the tenant. @throws 400 for an unknown one */
export type ZoneResolver = (named: string | undefined, parameter: string) => Promise<TimeZone>

const DEFAULT_GROUP_LIMIT = 1_000 // groups per page

/**
 * Parses the query of a chart: its own parameters, and otherwise those of a list. `$limit` and `$skip` apply to groups.
 * @throws 400 for properties that are unknown to the caller or not suitable
 */
export async function parseChartQuery(
  model: Model,
  actor: Actor | undefined,
  text: string,
  names: ParameterNames,
  resolveZone: ZoneResolver,
): Promise<ChartQuery> {
  const { by, needs } = names
  const search = new URLSearchParams(text)
  const flaws: FieldError[] = []
  const addError = (path: string, message: string) => void flaws.push({ path, message })

  const [byName, sumName] = [takeOption(by), takeOption('sum')]
  const { interval, timezone } = takeTimeOptions(model, actor, search, addError)
  // Other charts have another name for the property to group by.
  const other = by === 'x' ? 'groupBy' : 'x'
  const otherName = resolveName(model, actor, other) ? undefined : valuesOf(search, other)[0]
  const [groupField, sumField] = [resolveField(by, byName), resolveField('sum', sumName)]
  if (otherName !== undefined && (byName !== undefined || needs !== 'x'))
    addError(other, errors.otherParameterMessage(other, otherName))
  if (sumField && !sumField.kind?.exactSum) addError('sum', errors.notNumericMessage(model, actor, sumName!))
  if (interval) {
    const [name, value] = interval
    const near = findNearestKey(value, INTERVALS)
    const hint = near ? ` Did you mean ${near}?` : ''
    if (!isInterval(value)) addError(name, `interval must be one of: ${INTERVALS.join(', ')}.${hint}`)
    else if (!byName) addError(name, `interval requires a date field: ${by}=….`)
    else if (groupField && !groupField.kind?.toMillis) addError(name, errors.notDateMessage(model, actor, byName))
    else if (groupField && value === 'hour' && !groupField.kind?.isMoment)
      addError(name, `"${byName}" is a date without a time, so it has no hours. Use interval=day.`)
  }
  for (const name of new Set(search.keys())) {
    if (name.startsWith('$') || name === other || resolveName(model, actor, name.replace(/\[.*/, ''))) continue
    const message = errors.misspelledParameterMessage(name, [by, 'sum', 'interval', 'timezone'])
    if (message) addError(name, message)
  }
  if (flaws.length) badRequest(...flaws)
  const zone = await resolveZone(timezone?.[1], timezone?.[0] ?? 'timezone')
  if (!valuesOf(search, '$limit').length) search.set('$limit', `${DEFAULT_GROUP_LIMIT}`)
  const query = parseQuery(model, actor, `${search}`, zone)
  return { query, by: groupField, sum: sumField, interval: interval && (interval[1] as Interval), zone }

  /** Removes a chart parameter from the query, so that it is not read as a filter. */
  function takeOption(name: string): string | undefined {
    return takeParameter(search, name, addError)
  }

  function resolveField(name: string, key: string | undefined): ResolvedName | undefined {
    if (key === undefined)
      return void (name === needs && addError(name, errors.missingParameterMessage(model, actor, names, otherName)))
    const resolved = resolveName(model, actor, key)
    if (!resolved) addError(name, unknownFieldMessage(model, actor, key))
    else if (typeof resolved === 'string') addError(name, resolved)
    // SQLite's JSON paths do not match names with these characters.
    else if (/["\\]/.test(key)) addError(name, `"${key}" contains characters that are not supported for grouping.`)
    else return resolved
  }
}

/** Parses the query of a count: the filters of a list, and a time zone. @throws 400 */
export async function parseCountQuery(
  model: Model,
  actor: Actor | undefined,
  text: string,
  resolveZone: ZoneResolver,
): Promise<Query> {
  const search = new URLSearchParams(text)
  const flaws: FieldError[] = []
  const { timezone } = takeTimeOptions(model, actor, search, (path, message) => void flaws.push({ path, message }))
  for (const name of ['x', 'groupBy'])
    if (valuesOf(search, name).length && !resolveName(model, actor, name))
      flaws.push({ path: name, message: errors.COUNT_GROUPS_MESSAGE })
  if (flaws.length) badRequest(...flaws)
  return parseQuery(model, actor, `${search}`, await resolveZone(timezone?.[1], timezone?.[0] ?? 'timezone'))
}

type AddError = (path: string, message: string) => void

/**
 * Removes `interval` and `timezone`, with the names under which they were sent. A field of such a name is filtered by the
 * bare name; with a dollar sign, it always is the option.
 */
function takeTimeOptions(model: Model, actor: Actor | undefined, search: URLSearchParams, addError: AddError) {
  const take = (name: string): [parameter: string, value: string] | undefined => {
    const names = [`$${name}`, ...(resolveName(model, actor, name) ? [] : [name])]
    const given = names.flatMap((one) => {
      const value = takeParameter(search, one, addError)
      return value === undefined ? [] : [[one, value] as [string, string]]
    })
    if (given.length > 1) addError(`$${name}`, `${name} may be given only once.`)
    return given[0]
  }
  return { interval: take('interval'), timezone: take('timezone') }
}

/** As in a list, an empty value is ignored. */
const valuesOf = (search: URLSearchParams, name: string) =>
  search.getAll(name).filter((value) => value !== '' && value !== 'undefined')

function takeParameter(search: URLSearchParams, name: string, addError: AddError): string | undefined {
  const [value, ...others] = valuesOf(search, name)
  search.delete(name)
  if (others.length) addError(name, `${name} may be given only once.`)
  return value
}
