import type { Ctx } from '../accounts/context'
import { doubleSum } from '../blueprints/fields/exact-sum'
import { numberKey } from '../blueprints/fields/index-key-codec'
import { toIsoString } from '../core/clock'
import { readPath } from '../core/json'
import { formatQuarter, startOfInterval, type TimeZone } from '../core/time-zone'
import { readFairly } from '../entities/query/fair-reads'
import type { Event } from '../jobs/outbox'
import type { Db } from '../storage/port'
import { findMatching, resolveEventZone } from './events'
import type { Filters, Grouping } from './shapes'

const GROUP_KEYS: Record<Grouping, (event: Event, zone: TimeZone) => string> = {
  hour: ({ created }, zone) => zone.format(zone.startOf('hour', created)),
  day: ({ created }, zone) => zone.formatDay(created),
  week: ({ created }, zone) => toIsoString(startOfInterval.week(zone.toLocal(created))).slice(0, 10),
  month: ({ created }, zone) => zone.formatDay(created).slice(0, 7),
  quarter: ({ created }, zone) => formatQuarter(zone.toLocal(created)),
  year: ({ created }, zone) => zone.formatDay(created).slice(0, 4),
  source: ({ source }) => source,
  kind: ({ kind }) => kind,
  eventName: ({ eventName }) => eventName,
}

type SumQueryInput = Filters & { sum: string; groupBy?: Grouping | '' }

/**
 * Returns the sum of a number in the metadata of matching events. Events without that number are skipped.
 * @throws 400, 503 BUSY
 */
export const sumEvents = (ctx: Ctx, query: SumQueryInput, request: Request) =>
  readFairly(ctx, request, async (db) => sumMatching(db, query, await resolveEventZone(ctx, query)))

async function sumMatching(db: Db, { sum: path, groupBy, ...query }: SumQueryInput, zone: TimeZone) {
  let totalUnits = 0n
  const groups = new Map<string, { units: bigint; count: number }>()
  for await (const event of findMatching(db, query, zone)) {
    const value = readPath(event.metadata, path.replace(/^metadata\./, ''))
    if (typeof value !== 'number') continue
    const units = doubleSum.units(numberKey(value))
    totalUnits += units
    if (!groupBy) continue
    const key = GROUP_KEYS[groupBy](event, zone)
    const group = groups.get(key) ?? { units: 0n, count: 0 }
    groups.set(key, { units: group.units + units, count: group.count + 1 })
  }
  const groupSums = [...groups].map(([group, { units, count }]) => ({ group, sum: doubleSum.format(units), count }))
  groupSums.sort((one, other) => (one.group < other.group ? -1 : 1))
  return { sum: doubleSum.format(totalUnits), ...(groupBy && { groups: groupSums }) }
}
