import { type Static, type TSchema, t } from 'elysia'
import { strictObject } from '../core/shapes'

const perMinute = (description: string) =>
  t.Number({ minimum: 1, maximum: 10_000_000, multipleOf: 1, description: `${description}, per minute` })

/** How many requests one caller may make per minute, by their kind. */
export const CallerLimits = t.Object({
  reads: perMinute('requests with GET or HEAD'),
  writes: perMinute('all other requests'),
  costly: perMinute('exports, charts, counted lists, AI and lambdas, which also count as reads or writes'),
})
export type CallerLimits = Static<typeof CallerLimits>
export type RequestKind = keyof CallerLimits

const byCaller = <Limits extends TSchema>(limits: Limits) => ({
  guests: { ...limits, description: 'for each network address of guests' },
  users: { ...limits, description: 'for each user and each API token' },
})

/** The rate limits of a tenant. */
export const RateLimits = t.Object(byCaller(CallerLimits))
export type RateLimits = Static<typeof RateLimits>

/** Rate limits of which any may be left out, by caller. */
export const chosenRateLimits = byCaller(t.Optional(strictObject(t.Partial(CallerLimits).properties)))

/** The rate limits that the operator sets for a tenant. */
export const ChosenRateLimits = strictObject(chosenRateLimits)
export type ChosenRateLimits = Static<typeof ChosenRateLimits>
