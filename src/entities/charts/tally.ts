import type { Model } from '../../blueprints/model'
import type { Reach } from '../../blueprints/rules'
import { invalid } from '../../core/problem'
import type { Db } from '../../storage/port'
import { type FieldTarget, part } from '../conditions'
import { count } from '../counting'
import { shownIn } from '../wire'
import { type Grouping, groupingOf, type Place } from './grouping'
import type { Question } from './question'
import { countWithValues, entitiesBySlices, valuesBySlices } from './slices'
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
  question: Question,
  grouping: Grouping | undefined,
): Promise<Tally> {
  const { query, by, sum } = question
  const found: Tally = { all: { count: 0, units: 0n }, groups: new Map(), unknown: { count: 0, units: 0n } }
  const unitsOf = (keys: string[]) => keys.reduce((units, key) => units + sum!.kind!.addition!.units(key), 0n)

  const target = inIndex(question, reach, grouping)
  if (target) {
    for await (const rows of valuesBySlices(db, target))
      for (const [key, count, first] of rows as [string, number, number][])
        add(found, grouping, [key], sum ? unitsOf([key]) : 0n, Number(count), Number(first))
    if (by) {
      const lacking = (await count(db, model, reach, query)) - (await countWithValues(db, target))
      found.unknown.count = Math.max(0, lacking)
    }
    return found
  }

  // A list in the index has each of its values once; what to add up of it, only the document tells.
  const whole = !!sum && isMany(sum)
  const asked = [
    ...(grouping ? [grouping.asked] : []),
    ...(sum ? [whole ? part(shownIn(model)) : groupingOf(sum).asked] : []),
  ]
  const large = whole || (!!by && isMany(by))
  for await (const rows of entitiesBySlices(db, model, reach, query, asked, large))
    for (const row of rows) {
      const [added, count, first] = [row.at(-3)!, Number(row.at(-2)), Number(row.at(-1))]
      const values = !sum ? [] : whole ? keysOfDocument(sum, added as string) : keysIn(sum, added)
      add(found, grouping, by ? keysIn(by, row[0]!) : [], unitsOf(values), count, first)
    }
  return found
}

/**
 * The index alone tells of one property of all entities that there are; but not which entities have several values in
 * one group, nor how often they have a value.
 */
function inIndex({ query, by, sum }: Question, reach: Reach, grouping: Grouping | undefined): FieldTarget | undefined {
  const target = by && sum ? undefined : (by ?? sum)?.target
  if (target?.at !== 'field' || !target.indexed || !reach.all) return
  if (query.conditions.length || query.search !== undefined) return
  return target.single || grouping?.exact ? target : undefined
}

function add(
  { all, groups, unknown }: Tally,
  grouping: Grouping | undefined,
  keys: string[],
  units: bigint,
  count: number,
  first: number,
) {
  const amount = { count, units: units * BigInt(count) }
  increase(all, amount)
  if (!grouping) return
  if (!keys.length) increase(unknown, amount)
  for (const [place, key] of new Map(keys.map((key) => [grouping.placeOf(key), key]))) {
    const group = groups.get(place)
    if (group) {
      increase(group, amount)
      if (first < group.first) Object.assign(group, { first, key })
    } else if (groups.size < MOST) groups.set(place, { ...amount, place, first, key })
    else refuseSoMany()
  }
}

function increase(amount: Amount, { count, units }: Amount) {
  amount.count += count
  amount.units += units
}

const refuseSoMany = () =>
  invalid({ path: '', message: `These are more than ${MOST} groups. Filter them, or group by something else.` })
