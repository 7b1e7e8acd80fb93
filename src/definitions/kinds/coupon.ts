import { parseIsoDateTime, toIsoString } from '../../core/clock'
import * as coupons from '../../payments/coupons/coupons'
import { NewCoupon } from '../../payments/shapes'
import { defineKind } from './definition-kind'

const DEFAULTS = {
  ...{ currency: null, maxRedemptions: null, validFrom: null, validUntil: null },
  ...{ benefitDurationUnit: null, benefitDurationValue: null, applicablePlanIds: [], isActive: true },
}

/** A coupon. A removed one is deactivated, because subscriptions refer to it. */
export const coupon = defineKind({
  folder: 'coupons',
  nameKey: 'code',
  shape: NewCoupon,
  defaults: DEFAULTS,
  normalize: ({ currency, validFrom, validUntil, ...definition }) => ({
    ...definition,
    ...(typeof currency === 'string' && { currency: currency.toUpperCase() }),
    ...(validFrom !== undefined && { validFrom: normalizeTime(validFrom) }),
    ...(validUntil !== undefined && { validUntil: normalizeTime(validUntil) }),
  }),
  prepare: (definition, { before }) => ({
    ...(before?.currency && definition.discountType === 'fixed' ? { currency: before.currency } : {}),
    ...definition,
  }),
  mapReferences: ({ applicablePlanIds, ...definition }, map) => ({
    ...definition,
    ...(Array.isArray(applicablePlanIds) && {
      applicablePlanIds: applicablePlanIds.map((plan) => map('plan', plan)).filter((plan) => plan !== undefined),
    }),
  }),
  isArchived: true,
  isKept: ({ definition }) => definition.isActive === false,
  list: coupons.list,
  get: async (ctx, id) => ({ value: await coupons.get(ctx, id) }),
  toStored({ _id, code, currentRedemptions: _, created: __, updated: ___, ...definition }) {
    return { id: _id, name: code, definition }
  },
  async validate(ctx, input) {
    // Without a currency, a fixed one has the default currency, which the same push may change.
    if (input.currency || input.discountType !== 'fixed') await coupons.validate(ctx, input)
  },
  create: async (ctx, input) => ({ value: await coupons.create(ctx, input) }),
  change: (ctx, id, input) => coupons.change(ctx, id, { ...DEFAULTS, ...input }),
  remove: (ctx, id) => coupons.remove(ctx, id),
})

function normalizeTime(time: unknown) {
  const moment = typeof time === 'string' ? parseIsoDateTime(time) : undefined
  return moment === undefined ? time : toIsoString(moment)
}
