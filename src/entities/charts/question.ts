import type { Actor } from '../../accounts/actors'
import type { Model } from '../../blueprints/model'
import { type Flaw, invalid } from '../../core/problem'
import { type Query, type Resolved, readQuery, resolve, unknownField } from '../query'
import { type Interval, intervals, isInterval } from './grouping'

/** What a chart is about: which entities, by what they are grouped, and what of them is added up. */
export type Question = { query: Query; by?: Resolved; sum?: Resolved; interval?: Interval }

/** What a kind of chart calls the property that it groups by, and which ones it can't be without. */
export type Names = { by: 'x' | 'groupBy'; needs: 'x' | 'sum' }

const GROUPS = 1_000 // shown at once

/**
 * Reads the query of a chart: what is its own, and otherwise that of a list. `$limit` and `$skip` are about groups.
 * @throws 400 for properties that the caller doesn't know, or that can't be used like this
 */
export function readQuestion(model: Model, actor: Actor | undefined, text: string, { by, needs }: Names): Question {
  const search = new URLSearchParams(text)
  const flaws: Flaw[] = []
  const refuse = (path: string, message: string) => void flaws.push({ path, message })

  const [byName, sumName, interval] = [taken(by), taken('sum'), taken('interval')]
  const [grouped, added] = [named(by, byName), named('sum', sumName)]
  if (added && !added.kind?.addition) refuse('sum', `"${sumName}" is not a number, so it cannot be added up.`)
  if (interval !== undefined) {
    if (!isInterval(interval)) refuse('interval', `An interval is one of ${intervals.join(', ')}.`)
    else if (!byName) refuse('interval', `Name the date that the interval is about: ${by}=….`)
    else if (grouped && !grouped.kind?.moment) refuse('interval', `"${byName}" is not a date, so it has no intervals.`)
  }
  if (flaws.length) invalid(...flaws)
  if (!given('$limit').length) search.set('$limit', `${GROUPS}`)
  const query = readQuery(model, actor, `${search}`)
  return { query, by: grouped, sum: added, interval: isInterval(interval) ? interval : undefined }

  /** As in a list, an empty value counts as none. */
  function given(name: string) {
    return search.getAll(name).filter((value) => value !== '' && value !== 'undefined')
  }

  /** What is the chart's own is no filter. */
  function taken(name: string): string | undefined {
    const [value, ...others] = given(name)
    search.delete(name)
    if (others.length) refuse(name, `Give ${name} once.`)
    return value
  }

  function named(name: string, key: string | undefined): Resolved | undefined {
    if (key === undefined)
      return void (name === needs && refuse(name, `${name} is required: name a field, such as ${name}=created.`))
    const found = resolve(model, actor, key)
    if (!found) refuse(name, unknownField(model, actor, key))
    else if (typeof found === 'string') refuse(name, found)
    // SQLite finds no name with these in it.
    else if (/["\\]/.test(key)) refuse(name, `"${key}" has characters by which nothing can be grouped.`)
    else return found
  }
}
