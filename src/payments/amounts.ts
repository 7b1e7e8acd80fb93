import { and, eq, sql } from 'drizzle-orm'
import { getConnection } from '../connections/resolver'
import { Problem } from '../core/problem'
import { getSettings } from '../platform/settings/tenant-settings'
import type { Db } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { exponentOf, fromMinorUnits, toExactMinorUnits } from './money'
import { paymentsSettings } from './payments-settings'
import { isProviderKind } from './providers'
import { holdsAmount } from './providers/amount-steps'
import { coupons, type ProviderKind, plans } from './tables'

/** Returns the kind of the connection that payments use, or null. A removed connection counts as none. */
export async function findConnectedKind(tenant: Tenant): Promise<ProviderKind | null> {
  const { paymentSourceId } = await getSettings(tenant, paymentsSettings)
  const row = paymentSourceId ? await getConnection(tenant.db, paymentSourceId).catch(() => undefined) : undefined
  return row && isProviderKind(row.kind) ? row.kind : null
}

/** Returns why a currency, or the provider, cannot hold an amount of the API, or undefined if they can. */
export function findAmountFlaw(amount: number, currency: string, kind: ProviderKind | null): string | undefined {
  const minor = toExactMinorUnits(amount, currency)
  const decimals = exponentOf(currency)
  if (minor === undefined)
    return decimals
      ? `An amount in ${currency} has at most ${decimals} decimal places.`
      : `An amount in ${currency} has no decimal places.`
  return holdsAmount(kind, minor, currency) ? undefined : describeStep(amount, currency, kind!)
}

const describeStep = (amount: number, currency: string, kind: ProviderKind) =>
  `${kind} cannot charge ${amount} ${currency}. Leave out the last decimal places.`

/** Refuses an amount in minor units that the provider cannot hold, such as a price from before it was connected. */
export function assertHeld(minor: number, currency: string, kind: ProviderKind) {
  if (holdsAmount(kind, minor, currency)) return
  throw new Problem(400, 'INVALID_AMOUNT', describeStep(fromMinorUnits(minor, currency), currency, kind))
}

/**
 * Returns an amount in minor units.
 * @throws 400 INVALID_AMOUNT when it is not positive, or when the currency or the provider cannot hold it
 */
export function requirePositiveAmount(amount: unknown, currency: string, kind: ProviderKind | null): number {
  const isPositive = typeof amount === 'number' && amount > 0
  const flaw = isPositive
    ? findAmountFlaw(amount, currency, kind)
    : `The amount must be positive and at least the smallest unit of ${currency}.`
  if (flaw) throw new Problem(400, 'INVALID_AMOUNT', flaw, { details: [{ path: '/amount', message: flaw }] })
  return toExactMinorUnits(amount, currency)!
}

const MAX_WARNINGS = 100

/** Returns a warning for each price and discount that the connected provider cannot hold. Checkouts refuse them. */
export async function listAmountWarnings(db: Db, kind: ProviderKind | null) {
  if (!kind) return []
  const prices = await db.select().from(plans).where(eq(plans.isActive, true))
  const isFixed = and(eq(coupons.isActive, true), sql`${coupons.currency} is not null`)
  const found = prices.flatMap(({ name, currency, monthlyPrice, yearlyPrice }) =>
    [monthlyPrice, yearlyPrice].map((minor) => ({ what: `The plan "${name}"`, minor, currency })),
  )
  for (const { code, currency, discount } of await db.select().from(coupons).where(isFixed))
    if (discount.type === 'fixed')
      found.push({ what: `The coupon "${code}"`, minor: discount.amount, currency: currency! })
  return found
    .filter(({ minor, currency }) => minor !== null && !holdsAmount(kind, minor, currency))
    .slice(0, MAX_WARNINGS)
    .map(({ what, minor, currency }) => ({
      path: '/metadata/paymentSourceId',
      message: `${what}: ${describeStep(fromMinorUnits(minor!, currency), currency, kind)}`,
    }))
}
