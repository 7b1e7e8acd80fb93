import type { Model } from '../../blueprints/model'
import type { Reach } from '../../blueprints/rules'
import { invalid } from '../../core/problem'
import type { Db } from '../../storage/port'
import { part } from '../conditions'
import { count } from '../plan'
import { type Grouping, groupingOf, type Place } from './grouping'
import type { Question } from './question'
import { entitiesBySlices, isInIndex, valuesBySlices } from './slices'
import { isMany, keysIn, keysOfDocument } from './values'

/** How many entities, and their sum in units of its kind. */
export type Amount = { count: number; units: bigint }
/** A group, and an entity that is in it by the value with this key. */
export type Group = Amount & { place: Place; first: number; key: string }
export type Tally = { all: Amount; groups: Map<Place, Group>; unknown: Amount }

const MOST = 100_000 // groups that are told from each other

/**
 * Counts entities and adds them up: all, those of each group, and those that are in none. An entity is once in every
 * group that a value of it is in. @throws 400 for too many groups
 */
export async function tally(
  db: Db,
  model: Model,
  reach: Reach,
  { query, by, sum }: Question,
  grouping: Grouping | undefined,
): Promise<Tally> {
  const found: Tally = { all: { count: 0, units: 0n }, groups: new Map(), unknown: { count: 0, units: 0n } }
  const unitsOf = (keys: string[]) => keys.reduce((units, key) => units + sum!.kind!.addition!.units(key), 0n)
  const add = (keys: string[] | undefined, units: bigint, count: number, first: number) => {
    const amount = { count, units: units * BigInt(count) }
    increase(found.all, amount)
    if (!grouping || !keys) return
    if (!keys.length) increase(found.unknown, amount)
    for (const [place, key] of new Map(keys.map((key) => [grouping.placeOf(key), key]))) {
      const group = found.groups.get(place)
      if (group) {
        increase(group, amount)
        if (first < group.first) Object.assign(group, { first, key })
      } else if (found.groups.size < MOST) found.groups.set(place, { ...amount, place, first, key })
      else refuseSoMany()
    }
  }

  const only = by && sum ? undefined : (by ?? sum)
  if (only && isInIndex(only.target, reach, query)) {
    for await (const rows of valuesBySlices(db, only.target))
      for (const [key, count, first] of rows as [string, number, number][])
        add(by && [key], sum ? unitsOf([key]) : 0n, Number(count), Number(first))
    if (by) found.unknown.count = (await count(db, model, reach, query)) - found.all.count
    return found
  }

  // A list in the index has each of its values once; what to add up of it, only the document tells.
  const whole = !!sum && isMany(sum)
  const asked = [
    ...(grouping ? [grouping.asked] : []),
    ...(sum ? [whole ? part('e.shown') : groupingOf(sum).asked] : []),
  ]
  for await (const rows of entitiesBySlices(db, model, reach, query, asked, whole))
    for (const row of rows) {
      const [count, first] = [Number(row.at(-2)), Number(row.at(-1))]
      const keys = by && keysIn(by, row[0]!)
      const added = row.at(-3)!
      const values = !sum ? [] : whole ? keysOfDocument(sum, added as string) : keysIn(sum, added)
      add(keys, unitsOf(values), count, first)
    }
  return found
}

function increase(amount: Amount, { count, units }: Amount) {
  amount.count += count
  amount.units += units
}

const refuseSoMany = () =>
  invalid({ path: '', message: `These are more than ${MOST} groups. Filter them, or group by something else.` })
