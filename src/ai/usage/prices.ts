import { settingsOf } from '../../accounts/settings'
import type { Tenant } from '../../tenancy/tenants'
import type { Usage } from '../turn/model'

/** Costs are kept as millionths of the currency that a tenant's prices are in, and told as numbers of it. */
export const MILLION = 1_000_000
const DEAREST = 1e15 // that a row has room for, so that many can be summed

/**
 * What so many tokens of a model cost, in millionths, rounded once: by the tenant's price for that model, or for `*`, any
 * other. Nobody knows the prices of all vendors for long, so without one it costs nothing.
 */
export async function costOf(tenant: Tenant, model: string, { prompt, completion }: Usage): Promise<number> {
  const { prices } = await settingsOf(tenant, 'ai-configuration')
  const price = Object.hasOwn(prices, model) ? prices[model] : prices['*']
  if (!price) return 0
  return Math.min(Number(rounded(part(prompt, price.prompt) + part(completion, price.completion))), DEAREST)
}

/** A price for a million tokens is as many millionths for one: here in millionths of those, so that sums are exact. */
const part = (tokens: number, price: number) => BigInt(tokens) * BigInt(Math.round(price * MILLION))

const rounded = (fine: bigint) => (fine + BigInt(MILLION / 2)) / BigInt(MILLION)
