import { getSettings } from '../../platform/settings/tenant-settings'
import type { Tenant } from '../../tenancy/tenants'
import type { TokenUsage } from '../turn/reply'
import { usageSettings } from './usage-settings'

/** Costs are stored in millionths of the currency of the tenant's prices; the API shows them in units of it. */
export const MICROS_PER_UNIT = 1_000_000
const MAX_COST_MICROS = 1e15 // low enough that many rows can be summed up exactly

/**
 * Returns the cost of tokens in millionths of the currency, rounded once, by the tenant's price for the model or for `*`.
 * Returns 0 if there is no price: no default prices are built in, because vendors change theirs.
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

/** A price per million tokens is the price per token in millionths. It is scaled by a million, so sums are exact. */
const scaledCost = (tokens: number, price: number) => BigInt(tokens) * BigInt(Math.round(price * MICROS_PER_UNIT))

const roundToMicros = (scaled: bigint) => (scaled + BigInt(MICROS_PER_UNIT / 2)) / BigInt(MICROS_PER_UNIT)
