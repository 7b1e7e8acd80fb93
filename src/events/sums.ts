import type { Ctx } from '../accounts/guard'
import { numberKey } from '../blueprints/fields/keys'
import { doubles } from '../blueprints/fields/sums'
import { iso } from '../core/clock'
import type { Event } from '../jobs/outbox'
import { matching } from './records'
import type { Filters, Grouping } from './shapes'

const keyOf: Record<Grouping, (event: Event) => string> = {
  day: ({ created }) => iso(created).slice(0, 10),
  month: ({ created }) => iso(created).slice(0, 7),
  year: ({ created }) => iso(created).slice(0, 4),
  source: ({ source }) => source,
  kind: ({ kind }) => kind,
  eventName: ({ eventName }) => eventName,
}

type Question = Filters & { sum: string; groupBy?: Grouping | '' }

/** Adds up a number in the metadata of the events that are meant; events without it count for nothing. */
export async function sum({ db }: Ctx, { sum: path, groupBy, ...query }: Question) {
  let all = 0n
  const groups = new Map<string, { units: bigint; count: number }>()
  for await (const event of matching(db, query)) {
    const value = at(event.metadata, path)
    if (typeof value !== 'number') continue
    const units = doubles.units(numberKey(value))
    all += units
    if (!groupBy) continue
    const key = keyOf[groupBy](event)
    const group = groups.get(key) ?? { units: 0n, count: 0 }
    groups.set(key, { units: group.units + units, count: group.count + 1 })
  }
  const told = [...groups].map(([group, { units, count }]) => ({ group, sum: doubles.told(units), count }))
  told.sort((one, other) => (one.group < other.group ? -1 : 1))
  return { sum: doubles.told(all), ...(groupBy && { groups: told }) }
}

/** The part of a document at a dotted path, which may begin with the name of the document. */
function at(metadata: unknown, path: string): unknown {
  let part = metadata
  for (const key of path.replace(/^metadata\./, '').split('.')) {
    if (part === null || typeof part !== 'object' || !Object.hasOwn(part, key)) return
    part = (part as Record<string, unknown>)[key]
  }
  return part
}
