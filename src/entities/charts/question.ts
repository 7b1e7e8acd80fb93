import type { Actor } from '../../accounts/actors'
import type { Model } from '../../blueprints/model'
import { type Flaw, invalid } from '../../core/problem'
import { type Query, type Resolved, readQuery, resolve } from '../query'
import { type Interval, intervals } from './grouping'

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

  const [grouped, added, interval] = [named(by), named('sum'), read('interval')]
  for (const name of ['by', 'sum', 'interval'] as const) search.delete(name === 'by' ? by : name)
  if (!given(search, '$limit').length) search.set('$limit', `${GROUPS}`)
  if (added && !added.kind?.addition) refuse('sum', `"${read('sum')}" is not a number, so it cannot be added up.`)
  if (interval !== undefined) {
    if (!intervals.includes(interval as Interval)) refuse('interval', `An interval is one of ${intervals.join(', ')}.`)
    else if (grouped && !grouped.kind?.moment)
      refuse('interval', `"${read(by)}" is not a date, so it has no intervals.`)
    else if (!grouped && !flaws.length) refuse('interval', `Name the date that the interval is about: ${by}=….`)
  }
  if (flaws.length) invalid(...flaws)
  const query = readQuery(model, actor, `${search}`)
  return { query, by: grouped, sum: added, interval: interval as Interval | undefined }

  function read(name: string): string | undefined {
    const [value, ...others] = given(new URLSearchParams(text), name)
    if (others.length) refuse(name, `Give ${name} once.`)
    return value
  }

  function named(name: string): Resolved | undefined {
    const key = read(name)
    if (key === undefined) return void (name === needs && refuse(name, `Name a property: ${name}=….`))
    const found = resolve(model, actor, key)
    if (!found) refuse(name, `The blueprint "${model.key}" has no field "${key}".`)
    else if (typeof found === 'string') refuse(name, found)
    // SQLite finds no name with these in it.
    else if (/["\\]/.test(key)) refuse(name, `"${key}" has characters by which nothing can be grouped.`)
    else return found
  }
}

/** As in a list, an empty value counts as none. */
const given = (search: URLSearchParams, name: string) =>
  search.getAll(name).filter((value) => value !== '' && value !== 'undefined')
