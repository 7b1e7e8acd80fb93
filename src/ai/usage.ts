import { settingsOf } from '../accounts/settings'
import type { Tenant } from '../tenancy/tenants'
import type { Usage } from './turn/model'

export type UsageRow = typeof import('./tables').usage.$inferInsert

/** What so many tokens of a model cost: millionths of the currency of the tenant's prices; 0 where it has none for it. */
export async function costOf(tenant: Tenant, model: string, { prompt, completion }: Usage): Promise<number> {
  const { prices } = await settingsOf(tenant, 'ai-configuration')
  const price = Object.hasOwn(prices, model) ? prices[model] : undefined
  // A price for a million tokens is as many millionths for one.
  return price ? Math.round(prompt * price.prompt + completion * price.completion) : 0
}
