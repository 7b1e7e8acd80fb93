import { type Static, t } from 'elysia'
import { id, time } from '../../core/shapes'
import { growingListing } from '../../storage/lists'

const maybe = t.Optional
const tokens = t.Number({ description: 'tokens' })
const cost = t.Number({ description: 'in the currency of the prices in the `ai-configuration`' })

const status = t.Union([t.Literal('completed'), t.Literal('failed'), t.Literal('aborted')])
const kind = t.Union([t.Literal('completion'), t.Literal('embedding')])

/** What a completion took, or an embedding. */
export const Used = t.Object({
  _id: id,
  created: time,
  kind,
  integration: t.Nullable(t.String(), { description: 'none, where a source was asked directly' }),
  source: t.String({ description: 'the integration source, or `echo`' }),
  model: t.String(),
  user: t.Nullable(t.String()),
  workspace: t.Nullable(t.String()),
  thread: t.Nullable(t.String()),
  promptTokens: tokens,
  completionTokens: tokens,
  cost,
  estimated: t.Boolean({ description: 'whether the source’s server has not counted the tokens' }),
  status,
  durationMs: t.Number(),
})
export type Used = Static<typeof Used>

const dates = ['day', 'month'] as const
export const groupings = [
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
export type Grouping = (typeof groupings)[number]

/** What several took together. */
export const UsedTogether = t.Object({
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
  count: t.Number({ description: 'how many completions and embeddings' }),
})
export type UsedTogether = Static<typeof UsedTogether>

const csv = (description: string) => maybe(t.String({ description: `${description}, comma-separated` }))
const filters = {
  from: maybe(t.String({ description: 'not before this day or moment' })),
  to: maybe(t.String({ description: 'before this moment; of a day, all of it' })),
  user: csv('of these users'),
  workspace: csv('of these workspaces'),
  integration: csv('of these integrations'),
  source: csv('of these integration sources'),
  model: csv('of these models'),
  thread: csv('of these threads'),
  status: csv('`completed`, `failed` or `aborted`'),
  kind: csv('`completion` or `embedding`'),
}
export const UsageList = t.Object({
  ...growingListing,
  ...filters,
  groupBy: csv(`adds up by these instead: ${groupings.join(', ')}`),
})
export type Filters = { [filter in keyof typeof filters]?: string }
export type UsageQuery = Static<typeof UsageList>
