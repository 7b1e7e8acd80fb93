import { type Static, t } from 'elysia'
import { listParameter } from '../core/query-lists'
import { id, jsonObject, line, text, time } from '../core/shapes'
import { INTERVALS } from '../core/time-zone'
import { growingListQuery } from '../storage/pagination'

const optional = t.Optional
const filterParameter = (description: string) => t.Optional(t.String({ description }))
const shortName = line(200)

export const Event = t.Object({
  _id: id,
  source: t.String({ description: 'origin of the event: a part of the platform, or `plugin:…`' }),
  kind: t.String({ description: 'subject of the event, such as the key of a blueprint' }),
  eventName: t.String(),
  description: t.String(),
  metadata: jsonObject,
  user: t.Nullable(id, { description: 'user who caused the event' }),
  workspace: t.Nullable(id),
  created: time,
})
export type Event = Static<typeof Event>

export const NewEvent = t.Object({
  source: optional(shortName),
  kind: optional(shortName),
  eventName: optional(shortName),
  description: optional(text(10_000)),
  metadata: optional(jsonObject),
})
export type NewEvent = Static<typeof NewEvent>

/** Filters of events. A list matches any of its values. */
const filters = {
  kind: listParameter('several values'),
  eventName: listParameter('several values'),
  source: listParameter('several values'),
  user: listParameter('identifiers'),
  workspace: listParameter('identifiers'),
  period: t.Optional(
    t.String({
      'x-schema': { type: 'string', enum: ['last-day', 'last-week', 'last-month', 'last-year', 'all-time'] },
    }),
  ),
  from: filterParameter('ISO 8601: events at or after this time; a day begins in the time zone'),
  to: filterParameter('ISO 8601: events before this time'),
  timezone: filterParameter(
    'IANA time zone of days, such as Europe/Lisbon; default: that of the app-configuration, else UTC',
  ),
  search: filterParameter(
    'text that description, kind, name, source, or `_id` or `identifier` of the metadata contains; case-insensitive',
  ),
}
export type Filters = { [filter in keyof typeof filters]?: string }

export const EventList = t.Object({ ...growingListQuery, ...filters })
export const CountQuery = t.Object({ ...filters, groupBy: optional(t.Union([t.Literal('day'), t.Literal('')])) })
export const EventCount = t.Object({
  count: t.Number(),
  groups: optional(
    t.Array(t.Object({ group: t.String({ description: 'a day, such as 2026-01-31' }), count: t.Number() }), {
      description: 'days with events, with `groupBy=day`',
    }),
  ),
})
export const KnownEvents = t.Array(t.Object({ source: t.String(), kind: t.String(), eventName: t.String() }))
export const FilterOptions = t.Object({
  kinds: t.Array(t.String()),
  eventNames: t.Array(t.String()),
  sources: t.Array(t.String()),
})

const GROUPINGS = [...INTERVALS, 'source', 'kind', 'eventName'] as const
export type Grouping = (typeof GROUPINGS)[number]

export const SumQuery = t.Object({
  ...filters,
  sum: t.String({ minLength: 1, maxLength: 200, description: 'dotted path of a number in `metadata`' }),
  groupBy: optional(t.Union([...GROUPINGS, '' as const].map((value) => t.Literal(value)))),
})
const sumTotal = t.Union([t.Number(), t.String()], {
  description: 'a string when the sum is too large for a JSON number',
})
export const EventSum = t.Object({
  sum: sumTotal,
  groups: optional(
    t.Array(
      t.Object({
        group: t.String({ description: 'a week is its Monday, a quarter such as 2029-Q1, an hour has its offset' }),
        sum: sumTotal,
        count: t.Number(),
      }),
    ),
  ),
})

export const FailingJob = t.Object({
  _id: id,
  kind: t.String({ description: 'kind of job, such as `delivery`, `integration` or `mail`' }),
  subject: t.Nullable(
    t.Object({
      kind: t.Union([t.Literal('plugin'), t.Literal('integration'), t.Literal('mail')]),
      _id: id,
      name: t.Nullable(t.String({ description: 'name of the plugin or integration; recipient of the mail' })),
    }),
    { description: 'record that the job works for; null for other kinds, and once it is deleted' },
  ),
  attempts: t.Number({ description: 'failed attempts so far' }),
  error: t.Nullable(t.String({ description: 'error of the latest attempt' })),
  waiting: t.Number({ description: 'jobs that wait behind this one, counted up to 1,000' }),
  nextAttempt: time,
  created: time,
})
export type FailingJob = Static<typeof FailingJob>
