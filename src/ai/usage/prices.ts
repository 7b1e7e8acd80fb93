import { getSettings } from '../../platform/settings/tenant-settings'
import type { Tenant } from '../../tenancy/tenants'
import type { TokenUsage } from '../turn/model-call'
import { usageSettings } from './usage-settings'

/** Costs are kept as millionths of the currency that a tenant's prices are in, and told as numbers of it. */
export const MICROS_PER_UNIT = 1_000_000
const MAX_COST_MICROS = 1e15 // that a row has room for, so that many can be summed

/**
 * What so many tokens of a model cost, in millionths, rounded once: by the tenant's price for that model, or for `*`, any
 * other. Nobody knows the prices of all vendors for long, so without one it costs nothing.
 */
export async function calculateCost(
  tenant: Tenant,
  model: string,
  { prompt, completion }: TokenUsage,
): Promise<number> {
  const { prices } = await getSettings(tenant, usageSettings)
  const price = Object.hasOwn(prices, model) ? prices[model] : prices['*']
  if (!price) return 0
  return Math.min(
    Number(roundToMicros(scaledCost(prompt, price.prompt) + scaledCost(completion, price.completion))),
    MAX_COST_MICROS,
  )
}

/** A price for a million tokens is as many millionths for one: here in millionths of those, so that sums are exact. */
const scaledCost = (tokens: number, price: number) => BigInt(tokens) * BigInt(Math.round(price * MICROS_PER_UNIT))

const roundToMicros = (scaled: bigint) => (scaled + BigInt(MICROS_PER_UNIT / 2)) / BigInt(MICROS_PER_UNIT)
