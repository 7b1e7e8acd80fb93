import { type Static, t } from 'elysia'
import { listParameter } from '../../core/query-lists'
import { id, time } from '../../core/shapes'
import { growingListQuery } from '../../storage/pagination'

const maybe = t.Optional
const tokens = t.Number({ description: 'tokens' })
const cost = t.Number({ description: 'in the currency of the prices in the `ai-configuration`' })

const status = t.Union([t.Literal('completed'), t.Literal('failed'), t.Literal('aborted')])
const kind = t.Union([t.Literal('completion'), t.Literal('embedding')])

/** The usage of a completion or an embedding. */
export const AiUsage = t.Object({
  _id: id,
  created: time,
  kind,
  integration: t.Nullable(t.String(), { description: 'null where a source was called directly' }),
  source: t.String({ description: 'the integration source, or `echo`' }),
  model: t.String(),
  user: t.Nullable(t.String()),
  workspace: t.Nullable(t.String()),
  thread: t.Nullable(t.String()),
  promptTokens: tokens,
  completionTokens: tokens,
  cost,
  estimated: t.Boolean({ description: 'true if the tokens were estimated, because the source did not report them' }),
  status,
  durationMs: t.Number(),
})
export type AiUsage = Static<typeof AiUsage>

const dates = ['day', 'month'] as const
export const USAGE_GROUPINGS = [
  ...dates,
  'model',
  'user',
  'workspace',
  'integration',
  'source',
  'thread',
  'status',
  'kind',
] as const
export type Grouping = (typeof USAGE_GROUPINGS)[number]

/** The total usage of a group of completions and embeddings. */
export const AiUsageTotal = t.Object({
  day: maybe(t.String({ description: 'YYYY-MM-DD, UTC' })),
  month: maybe(t.String({ description: 'YYYY-MM, UTC' })),
  model: maybe(t.String()),
  user: maybe(t.Nullable(t.String())),
  workspace: maybe(t.Nullable(t.String())),
  integration: maybe(t.Nullable(t.String())),
  source: maybe(t.String()),
  thread: maybe(t.Nullable(t.String())),
  status: maybe(status),
  kind: maybe(kind),
  promptTokens: tokens,
  completionTokens: tokens,
  totalTokens: tokens,
  cost,
  count: t.Number({ description: 'number of completions and embeddings' }),
})
export type AiUsageTotal = Static<typeof AiUsageTotal>

const filters = {
  from: maybe(t.String({ description: 'earliest day or time, inclusive' })),
  to: maybe(t.String({ description: 'latest time, exclusive; a day is included in full' })),
  user: listParameter('only of these users'),
  workspace: listParameter('only of these workspaces'),
  integration: listParameter('only of these integrations'),
  source: listParameter('only of these integration sources'),
  model: listParameter('only of these models'),
  thread: listParameter('only of these threads'),
  status: listParameter('`completed`, `failed` or `aborted`'),
  kind: listParameter('`completion` or `embedding`'),
}
export const UsageList = t.Object({
  ...growingListQuery,
  ...filters,
  groupBy: listParameter(`returns totals grouped by these instead: ${USAGE_GROUPINGS.join(', ')}`),
})
export type UsageFilters = { [filter in keyof typeof filters]?: string }
export type UsageQuery = Static<typeof UsageList>
