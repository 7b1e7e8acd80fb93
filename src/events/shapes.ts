import { type Static, t } from 'elysia'
import { free, id, line, text, time } from '../core/shapes'
import { growingListing } from '../storage/lists'

const maybe = t.Optional
const option = (description: string) => t.Optional(t.String({ description }))
const name = line(200)

export const Event = t.Object({
  _id: id,
  source: t.String({ description: 'who tells it: a part of the platform, or `plugin:…`' }),
  kind: t.String({ description: 'what it is about' }),
  eventName: t.String(),
  description: t.String(),
  metadata: free,
  user: t.Nullable(id, { description: 'who did it' }),
  workspace: t.Nullable(id),
  created: time,
})
export type Event = Static<typeof Event>

export const NewEvent = t.Object({
  source: maybe(name),
  kind: maybe(name),
  eventName: maybe(name),
  description: maybe(text(10_000)),
  metadata: maybe(free),
})
export type NewEvent = Static<typeof NewEvent>

/** Which events are meant. Of lists, any will do. */
const filters = {
  kind: option('comma-separated'),
  eventName: option('comma-separated'),
  source: option('comma-separated'),
  user: option('identifiers, comma-separated'),
  workspace: option('identifiers, comma-separated'),
  period: t.Optional(
    t.String({
      'x-schema': { type: 'string', enum: ['last-day', 'last-week', 'last-month', 'last-year', 'all-time'] },
    }),
  ),
  from: option('ISO 8601: from this moment on'),
  to: option('ISO 8601: before this moment'),
  search: option('what description, kind, name or source contain, in letters of either case'),
}
export type Filters = { [filter in keyof typeof filters]?: string }

export const EventList = t.Object({ ...growingListing, ...filters })
export const EventFilters = t.Object(filters)
export const EventCount = t.Object({ count: t.Number() })
export const FilterOptions = t.Object({
  kinds: t.Array(t.String()),
  eventNames: t.Array(t.String()),
  sources: t.Array(t.String()),
})

const groupings = ['day', 'month', 'year', 'source', 'kind', 'eventName'] as const
export type Grouping = (typeof groupings)[number]

export const SumQuery = t.Object({
  ...filters,
  sum: t.String({ minLength: 1, maxLength: 200, description: 'which number in `metadata`, by its dotted path' }),
  groupBy: maybe(t.Union([...groupings, '' as const].map((value) => t.Literal(value)))),
})
const total = t.Union([t.Number(), t.String()], { description: 'text when it is too large for a number' })
export const EventSum = t.Object({
  sum: total,
  groups: maybe(t.Array(t.Object({ group: t.String(), sum: total, count: t.Number() }))),
})
