import * as plans from '../../payments/plans'
import { NewPlan } from '../../payments/shapes'
import { defineKind } from './definition-kind'

const DEFAULTS = {
  ...{ description: '', monthlyPrice: null, yearlyPrice: null, dynamic: false, isActive: true },
  ...{ features: [], sortOrder: 0, limits: {}, metadata: {}, externalIds: {} },
}

/** A plan, with its ids at providers. A removed one is archived, because subscriptions refer to it. */
export const plan = defineKind({
  folder: 'plans',
  nameKey: 'name',
  sharesNames: true,
  shape: NewPlan,
  defaults: DEFAULTS,
  normalize: ({ currency, ...definition }) => ({
    ...definition,
    ...(typeof currency === 'string' && { currency: currency.toUpperCase() }),
  }),
  prepare: (definition, { before }) => ({ ...(before && { currency: before.currency }), ...definition }),
  isArchived: true,
  isKept: ({ definition }) => definition.isActive === false,
  list: plans.list,
  get: async (ctx, id) => ({ value: await plans.get(ctx, id) }),
  toStored({ _id, name, created: _, updated: __, ...definition }) {
    return { id: _id, name, definition }
  },
  async validate(ctx, input, { before }) {
    // Without a currency, it has the default one, which the same push may change.
    if (input.currency) await plans.validate(ctx, { ...DEFAULTS, ...input }, before?.id)
  },
  create: async (ctx, input) => ({ value: await plans.create(ctx, { ...DEFAULTS, ...input }) }),
  change: (ctx, id, input) => plans.change(ctx, id, { ...DEFAULTS, ...input }),
  remove: (ctx, id) => plans.remove(ctx, id),
})
