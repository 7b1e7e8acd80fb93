import { Value } from '@sinclair/typebox/value'
import { eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { settingsOf } from '../../accounts/settings'
import { isDate, isMoment, iso, now } from '../../core/clock'
import type { Answer } from '../../core/etag'
import { type Flaw, missing, Problem, summaryOf } from '../../core/problem'
import { asked } from '../../core/shapes'
import { listFlaws } from '../../core/validation'
import { Conflict } from '../../storage/errors'
import { answerPage, type Listing, paged, pageOf } from '../../storage/lists'
import type { Db } from '../../storage/port'
import { currencyOf, decimalFrom, MOST, minorOf } from '../money'
import { CouponData, type Coupon as Told } from '../shapes'
import { type Coupon, coupons } from '../tables'

const { _id, code, isActive, currentRedemptions, validFrom, validUntil, created, updated } = coupons
const sortable = { _id, code, isActive, currentRedemptions, validFrom, validUntil, created, updated }

/** A page of coupons, newest first. */
export async function list({ db }: Ctx, query: Listing & { isActive?: string }, answer: Answer) {
  const page = pageOf(query, sortable)
  const active = asked(query, 'isActive')
  const where = active === undefined ? undefined : eq(isActive, active)
  const rows = await paged(page, db.select().from(coupons).where(where))
  return answerPage(answer, page, rows.map(shown), () => db.$count(coupons, where))
}

/** One coupon. @throws 404 COUPON_NOT_FOUND */
export const get = async ({ db }: Ctx, id: string) => shown(await found(db, id))

/** A new coupon. @throws 400 INVALID_COUPON_DATA, COUPON_CODE_EXISTS */
export async function create(ctx: Ctx, input: Record<string, unknown>): Promise<Told> {
  const { defaultCurrency } = await settingsOf(ctx, 'payments-configuration')
  const time = iso(now())
  const fresh = { _id: Bun.randomUUIDv7(), currentRedemptions: 0, created: time, updated: time }
  const coupon: Coupon = { ...fresh, ...fitting(BLANK, input, defaultCurrency) }
  await unlessTaken(ctx.write((tx) => tx.insert(coupons).values(coupon)))
  return shown(coupon)
}

/**
 * Changes what it mentions, and judges what comes of it as a new one. Who has it already keeps what they have.
 * @throws 400 INVALID_COUPON_DATA, COUPON_CODE_EXISTS, 404 COUPON_NOT_FOUND
 */
export async function change(ctx: Ctx, id: string, input: Record<string, unknown>): Promise<Told> {
  const { defaultCurrency } = await settingsOf(ctx, 'payments-configuration')
  return unlessTaken(
    ctx.write(async (tx) => {
      const before = await found(tx, id)
      const coupon = { ...before, ...fitting(shown(before), input, defaultCurrency), updated: iso(now()) }
      await tx.update(coupons).set(coupon).where(eq(_id, id))
      return shown(coupon)
    }),
  )
}

/** It can't be redeemed any more; who has, keeps it. @throws 404 */
export const remove = (ctx: Ctx, id: string) => change(ctx, id, { isActive: false })

/** @throws 404 COUPON_NOT_FOUND */
const found = async (db: Pick<Db, 'select'>, id: string): Promise<Coupon> =>
  (!id.includes('\0') && (await db.select().from(coupons).where(eq(_id, id)).get())) || missing('coupon')

/** A coupon by its code, however that is written. */
export const byCode = async (db: Pick<Db, 'select'>, code: string): Promise<Coupon | undefined> =>
  db
    .select()
    .from(coupons)
    .where(eq(coupons.codeKey, keyOf(code)))
    .get()

/** A code as it is compared: without what surrounds it, whatever its letters' case. */
export const keyOf = (code: string) => code.replaceAll('\0', ' ').trim().normalize('NFC').toLowerCase()

const BLANK = {
  ...{ currency: null, maxRedemptions: null, validFrom: null, validUntil: null },
  ...{ benefitDurationUnit: null, benefitDurationValue: null, applicablePlanIds: [], isActive: true },
}

/** What was sent upon what there is, as it is kept. @throws 400 INVALID_COUPON_DATA with every flaw */
function fitting(before: Partial<Told>, input: Record<string, unknown>, defaultCurrency: string) {
  const sent = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))
  const data = Value.Clean(CouponData, { ...before, ...sent }) as CouponData
  if (typeof data.code === 'string') data.code = data.code.trim()
  const flaws: Flaw[] = listFlaws(CouponData, data)
  if (flaws.length) throw unfit(flaws)
  const refuse = (path: string, message: string) => flaws.push({ path, message })
  const { discountType, discountValue, benefitDurationUnit: unit, benefitDurationValue: value } = data
  const fixed = discountType === 'fixed'
  const currency = fixed ? currencyOf(data.currency ?? defaultCurrency) : null
  if (currency === undefined)
    refuse('/currency', `"${data.currency}" is not a currency of ISO 4217, such as USD or EUR.`)
  const amount = fixed && currency ? minorOf(discountValue, currency) : 0
  if (amount === undefined) refuse('/discountValue', `A discount is at most ${decimalFrom(MOST, currency!)}.`)
  if (!fixed && discountValue > 100) refuse('/discountValue', 'A percentage is at most 100.')
  if ((unit === null) !== (value === null))
    refuse('/benefitDurationUnit', 'benefitDurationUnit and benefitDurationValue belong together: set both, or none.')
  const [from, until] = [momentOf('validFrom'), momentOf('validUntil')]
  if (from && until && until <= from) refuse('/validUntil', 'validUntil must be later than validFrom.')
  if (flaws.length) throw unfit(flaws)
  const { code, maxRedemptions, applicablePlanIds, isActive } = data
  return {
    ...{ code, codeKey: keyOf(code), maxRedemptions, applicablePlanIds, isActive, currency: currency ?? null },
    discount: fixed
      ? { type: 'fixed' as const, amount: amount! }
      : { type: 'percentage' as const, percent: discountValue },
    ...{ validFrom: from, validUntil: until },
    benefit: unit === null || value === null ? null : { unit, value },
  }

  function momentOf(path: 'validFrom' | 'validUntil') {
    const text = data[path]
    if (text === null) return null
    if (isDate(text) || isMoment(text)) return iso(Date.parse(text))
    refuse(`/${path}`, `${path} must be a moment such as 2026-01-31T12:00:00Z.`)
    return null
  }
}

const unfit = (flaws: Flaw[]) =>
  new Problem(400, 'INVALID_COUPON_DATA', summaryOf(flaws), { details: flaws.slice(0, 100) })

async function unlessTaken<T>(writing: Promise<T>): Promise<T> {
  try {
    return await writing
  } catch (cause) {
    if (!(cause instanceof Conflict)) throw cause
    throw new Problem(400, 'COUPON_CODE_EXISTS', 'There is a coupon with this code already. Choose another code.', {
      cause,
    })
  }
}

export function shown({ codeKey: _, discount, benefit, currency, ...coupon }: Coupon): Told {
  return {
    ...coupon,
    discountType: discount.type,
    discountValue: discount.type === 'fixed' ? decimalFrom(discount.amount, currency!) : discount.percent,
    currency,
    benefitDurationUnit: benefit?.unit ?? null,
    benefitDurationValue: benefit?.value ?? null,
  }
}
