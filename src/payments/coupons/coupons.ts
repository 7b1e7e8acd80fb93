import { Value } from '@sinclair/typebox/value'
import { eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { now, parseIsoDateTime, toIsoString } from '../../core/clock'
import { type FieldError, notFound, Problem, summarizeErrors } from '../../core/problem'
import { parseFlag } from '../../core/shapes'
import { listFieldErrors } from '../../core/validation'
import { getSettings } from '../../platform/settings/tenant-settings'
import { Conflict } from '../../storage/errors'
import { applyPage, type ListQuery, parsePage, toListPage } from '../../storage/pagination'
import type { Db } from '../../storage/port'
import { findAmountFlaw, findConnectedKind } from '../amounts'
import { fromMinorUnits, MAX_MINOR_AMOUNT, parseCurrency, toMinorUnits } from '../money'
import { paymentsSettings } from '../payments-settings'
import { CouponData, type Coupon as CouponResponse } from '../shapes'
import { type Coupon, coupons, type ProviderKind } from '../tables'

const { _id, code, isActive, currentRedemptions, validFrom, validUntil, created, updated } = coupons
const sortable = { _id, code, isActive, currentRedemptions, validFrom, validUntil, created, updated }

/** Returns a page of coupons, newest first. */
export async function list({ db }: Ctx, query: ListQuery & { isActive?: string }) {
  const page = parsePage(query, sortable)
  const active = parseFlag(query, 'isActive')
  const where = active === undefined ? undefined : eq(isActive, active)
  const rows = await applyPage(page, db.select().from(coupons).where(where))
  return toListPage(page, rows.map(toCoupon), () => db.$count(coupons, where))
}

/** Returns a coupon. @throws 404 COUPON_NOT_FOUND */
export const get = async ({ db }: Ctx, id: string) => toCoupon(await getCoupon(db, id))

/** Creates a coupon. @throws 400 INVALID_COUPON_DATA, COUPON_CODE_EXISTS */
export async function create(ctx: Ctx, input: Record<string, unknown>): Promise<CouponResponse> {
  const { defaultCurrency } = await getSettings(ctx, paymentsSettings)
  const time = toIsoString(now())
  const fresh = { _id: Bun.randomUUIDv7(), currentRedemptions: 0, created: time, updated: time }
  const kind = await findConnectedKind(ctx)
  const coupon: Coupon = { ...fresh, ...validateCouponData(DEFAULT_COUPON_DATA, input, defaultCurrency, kind) }
  await rethrowCodeConflict(ctx.write((tx) => tx.insert(coupons).values(coupon)))
  return toCoupon(coupon)
}

/**
 * Changes the given fields, and validates the result like a new coupon. Subscriptions that have it keep their discount.
 * @throws 400 INVALID_COUPON_DATA, COUPON_CODE_EXISTS, 404 COUPON_NOT_FOUND
 */
export async function change(ctx: Ctx, id: string, input: Record<string, unknown>): Promise<CouponResponse> {
  const { defaultCurrency } = await getSettings(ctx, paymentsSettings)
  const kind = await findConnectedKind(ctx)
  return rethrowCodeConflict(
    ctx.write(async (tx) => {
      const before = await getCoupon(tx, id)
      const coupon = {
        ...before,
        ...validateCouponData(toCoupon(before), input, defaultCurrency, kind),
        updated: toIsoString(now()),
      }
      await tx.update(coupons).set(coupon).where(eq(_id, id))
      return toCoupon(coupon)
    }),
  )
}

/**
 * Checks a coupon as it would be created or changed, apart from its plans and what its provider can charge.
 * @throws 400 INVALID_COUPON_DATA
 */
export async function validate(ctx: Ctx, { applicablePlanIds: _, ...input }: Record<string, unknown>) {
  const { defaultCurrency } = await getSettings(ctx, paymentsSettings)
  validateCouponData(DEFAULT_COUPON_DATA, input, defaultCurrency, null)
}

/** Deactivates a coupon. Subscriptions that have redeemed it keep it. @throws 404 COUPON_NOT_FOUND */
export const remove = (ctx: Ctx, id: string) => change(ctx, id, { isActive: false })

/** @throws 404 COUPON_NOT_FOUND */
const getCoupon = async (db: Pick<Db, 'select'>, id: string): Promise<Coupon> =>
  (await db.select().from(coupons).where(eq(_id, id)).get()) ?? notFound('coupon')

/** Returns the coupon with a code, ignoring case and surrounding spaces. */
export const findByCode = async (db: Pick<Db, 'select'>, code: string): Promise<Coupon | undefined> =>
  db
    .select()
    .from(coupons)
    .where(eq(coupons.codeKey, normalizeCode(code)))
    .get()

/** Normalizes a code for comparisons: trimmed, NFC, in lower case. */
export const normalizeCode = (code: string) => code.replaceAll('\0', ' ').trim().normalize('NFC').toLowerCase()

const DEFAULT_COUPON_DATA = {
  ...{ currency: null, maxRedemptions: null, validFrom: null, validUntil: null },
  ...{ benefitDurationUnit: null, benefitDurationValue: null, applicablePlanIds: [], isActive: true },
}

/** Returns the coupon with the input applied, as it is stored. @throws 400 INVALID_COUPON_DATA with all errors */
function validateCouponData(
  before: Partial<CouponResponse>,
  input: Record<string, unknown>,
  defaultCurrency: string,
  kind: ProviderKind | null,
) {
  const sent = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))
  const data = Value.Clean(CouponData, { ...before, ...sent }) as CouponData
  if (typeof data.code === 'string') data.code = data.code.trim()
  const flaws: FieldError[] = listFieldErrors(CouponData, data)
  if (flaws.length) throw invalidCouponProblem(flaws)
  const addError = (path: string, message: string) => flaws.push({ path, message })
  const { discountType, discountValue, benefitDurationUnit: unit, benefitDurationValue: value } = data
  const fixed = discountType === 'fixed'
  const currency = fixed ? parseCurrency(data.currency ?? defaultCurrency) : null
  if (currency === undefined)
    addError('/currency', `"${data.currency ?? defaultCurrency}" is not an ISO 4217 currency such as USD or EUR.`)
  const amount = fixed && currency ? toMinorUnits(discountValue, currency) : 0
  if (amount === undefined)
    addError('/discountValue', `A discount is at most ${fromMinorUnits(MAX_MINOR_AMOUNT, currency!)}.`)
  const isUnchanged = before.discountValue === discountValue && before.currency === currency
  const flaw = fixed && currency && amount && !isUnchanged ? findAmountFlaw(discountValue, currency, kind) : undefined
  if (flaw) addError('/discountValue', flaw)
  if (!fixed && discountValue > 100) addError('/discountValue', 'A percentage is at most 100.')
  if ((unit === null) !== (value === null))
    addError('/benefitDurationUnit', 'benefitDurationUnit and benefitDurationValue must be set together.')
  const [from, until] = [momentOf('validFrom'), momentOf('validUntil')]
  if (from && until && until <= from) addError('/validUntil', 'validUntil must be later than validFrom.')
  if (flaws.length) throw invalidCouponProblem(flaws)
  const { code, maxRedemptions, applicablePlanIds, isActive } = data
  return {
    ...{ code, codeKey: normalizeCode(code), maxRedemptions, applicablePlanIds, isActive, currency: currency ?? null },
    discount: fixed
      ? { type: 'fixed' as const, amount: amount! }
      : { type: 'percentage' as const, percent: discountValue },
    ...{ validFrom: from, validUntil: until },
    benefit: unit === null || value === null ? null : { unit, value },
  }

  function momentOf(path: 'validFrom' | 'validUntil') {
    const text = data[path]
    if (text === null) return null
    const moment = parseIsoDateTime(text)
    if (moment !== undefined) return toIsoString(moment)
    addError(`/${path}`, `${path} must be a date and time such as 2026-01-31T12:00:00Z.`)
    return null
  }
}

const invalidCouponProblem = (flaws: FieldError[]) =>
  new Problem(400, 'INVALID_COUPON_DATA', summarizeErrors(flaws), { details: flaws.slice(0, 100) })

async function rethrowCodeConflict<T>(writing: Promise<T>): Promise<T> {
  try {
    return await writing
  } catch (cause) {
    if (!(cause instanceof Conflict)) throw cause
    throw new Problem(400, 'COUPON_CODE_EXISTS', 'A coupon with this code already exists. Choose another code.', {
      cause,
    })
  }
}

export function toCoupon({ codeKey: _, discount, benefit, currency, ...coupon }: Coupon): CouponResponse {
  return {
    ...coupon,
    discountType: discount.type,
    discountValue: discount.type === 'fixed' ? fromMinorUnits(discount.amount, currency!) : discount.percent,
    currency,
    benefitDurationUnit: benefit?.unit ?? null,
    benefitDurationValue: benefit?.value ?? null,
  }
}
