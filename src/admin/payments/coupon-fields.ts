import type { Plan } from '../api/schema'
import type { FormField, FormValues } from '../fields/field-form'
import { labelledChoice, labelledChoices } from './labelled-choice'
import { currencies } from './plan-fields'

const isPercentage = ({ discountType }: FormValues) => discountType !== 'fixed'
const isForever = ({ benefitDurationUnit: unit }: FormValues) => unit !== 'days' && unit !== 'months'

const DiscountTypeInput = labelledChoice([
  { value: 'percentage', label: 'A percentage of the price' },
  { value: 'fixed', label: 'An amount' },
])
const BenefitUnitInput = labelledChoice([
  { value: 'days', label: 'A number of days' },
  { value: 'months', label: 'A number of months' },
])

/** The fields of a coupon. Its plans are chosen by name. */
export const listCouponFields = (plans: readonly Plan[], currency: string | undefined): FormField[] => [
  {
    key: 'code',
    type: 'string',
    title: 'Code',
    required: true,
    description: 'Code that customers enter. Case does not matter.',
  },
  {
    key: 'discountType',
    type: 'string',
    title: 'Discount',
    default: 'percentage',
    required: true,
    Input: DiscountTypeInput,
  },
  { key: 'discountValue', type: 'number', title: 'How much', required: true, min: 0 },
  {
    key: 'currency',
    type: 'string',
    title: 'Currency',
    enum: currencies,
    default: currency,
    description: 'An amount is only taken off prices in its currency.',
    isHidden: isPercentage,
  },
  {
    key: 'benefitDurationUnit',
    type: 'string',
    title: 'How long the discount lasts',
    description: 'Default: as long as the subscription lasts.',
    Input: BenefitUnitInput,
  },
  { key: 'benefitDurationValue', type: 'integer', title: 'How many', min: 1, isHidden: isForever, required: true },
  {
    key: 'applicablePlanIds',
    type: 'string',
    multi: true,
    title: 'Plans',
    Input: labelledChoices(
      plans.map(({ _id, name }) => ({ value: _id, label: name })),
      'All plans',
    ),
  },
  {
    key: 'maxRedemptions',
    type: 'integer',
    title: 'How often it can be redeemed',
    min: 0,
    description: 'By all customers together. Without a number there is no limit.',
  },
  { key: 'validFrom', type: 'datetime', title: 'It can be redeemed from' },
  { key: 'validUntil', type: 'datetime', title: 'It can be redeemed until' },
]

/** Returns what is sent of a coupon: a discount without an end has no duration either. */
export const fromCouponValues = (changes: FormValues, values: FormValues): FormValues => ({
  ...changes,
  ...(isForever(values) &&
    'benefitDurationUnit' in changes && { benefitDurationUnit: null, benefitDurationValue: null }),
  ...('applicablePlanIds' in changes && { applicablePlanIds: changes.applicablePlanIds ?? [] }),
})
