import { t } from 'elysia'
import { strictObject } from '../../core/shapes'
import { defineSettings } from '../../platform/settings/tenant-settings'

/** Budgets and prices of AI usage. */
export const usageSettings = defineSettings(
  'ai-configuration',
  t.Object({
    budgets: t.Array(
      strictObject({
        scope: t.Union([t.Literal('tenant'), t.Literal('workspace'), t.Literal('user')]),
        period: t.Union([t.Literal('day'), t.Literal('month')]),
        unit: t.Union([t.Literal('tokens'), t.Literal('cost')]),
        limit: t.Number({ minimum: 0 }),
      }),
      { maxItems: 20, default: [], description: 'limits of AI usage for the tenant, or for each workspace or user' },
    ),
    prices: t.Record(
      t.String({ minLength: 1, maxLength: 200 }),
      strictObject({
        prompt: t.Number({ minimum: 0, maximum: 1e6 }),
        completion: t.Number({ minimum: 0, maximum: 1e6 }),
      }),
      { default: {}, description: 'by model, `*` for all others: price of one million prompt and completion tokens' },
    ),
  }),
)
