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

const MAX_QUOTA = Number.MAX_SAFE_INTEGER
const quota = (description: string) => t.Number({ minimum: 0, maximum: MAX_QUOTA, multipleOf: 1, description })

/** What there can be quotas of, in the order in which they are shown. */
const quotaProperties = {
  blueprints: quota('blueprints; 1,000 unless the operator sets another number'),
  entities: quota('entities of all blueprints'),
  users: quota('users, without that of the operator'),
  storage: quota('bytes that data and files take'),
  files: quota('uploaded files'),
  lambdaSeconds: quota('seconds for which lambdas run, per day (UTC)'),
  aiTokens: quota('tokens of AI, per month (UTC)'),
  mails: quota('mails that the mail server of the installation sends, per day (UTC)'),
}
export type QuotaKind = keyof typeof quotaProperties
export const QUOTA_KINDS = Object.keys(quotaProperties) as QuotaKind[]

const forEachKind = <Shape extends TSchema>(toShape: (shape: TSchema) => Shape) =>
  Object.fromEntries(QUOTA_KINDS.map((kind) => [kind, toShape(quotaProperties[kind])])) as Record<QuotaKind, Shape>

/** The quotas that a tenant has. */
export type Quotas = Partial<Record<QuotaKind, number>>

/** The quotas of tenants for which the operator has set none. */
export const DEFAULT_QUOTAS: Quotas = { blueprints: 1_000 }

const amount = t.Nullable(t.Number({ minimum: 0 }), { description: 'null where it cannot be measured now' })

/** The quotas of a tenant, and how much of each it uses. */
export const TenantQuotas = t.Object({
  ...forEachKind((shape) => t.Nullable(shape as typeof quotaProperties.entities, { description: shape.description })),
  usage: t.Object(
    forEachKind(() => amount),
    { description: 'what is used now, or was on this day or in this month (UTC)' },
  ),
})
export type TenantQuotas = Static<typeof TenantQuotas>

/** Quotas to set. `null` removes one, or sets its default; those that are left out stay. */
export const QuotaChange = strictObject({
  ...forEachKind((shape) =>
    t.Optional(t.Nullable(shape as typeof quotaProperties.entities, { description: shape.description })),
  ),
  usage: t.Optional(t.Unknown({ description: 'is ignored, so that what was read can be sent back' })),
})
export type QuotaChange = Static<typeof QuotaChange>
