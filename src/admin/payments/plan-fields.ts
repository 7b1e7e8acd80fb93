import { CURRENCIES } from '../../core/currencies'
import type { FormField, FormValues } from '../fields/field-form'
import { CustomerPreview } from './customer-preview'
import { PlanLimitsInput } from './plan-limits-input'
import { providerKinds, providers } from './providers'
import type { ProviderKind } from './providers/provider-kind'

const isDynamic = ({ dynamic }: FormValues) => dynamic === true

export const currencies = CURRENCIES

const externalIdFields = (kind: ProviderKind): FormField[] =>
  Object.entries(providers[kind].planIds).map(([key, title]) => ({
    key: `externalIds/${kind}/${key}`,
    type: 'string',
    title: `${title} at ${providers[kind].label}`,
  }))

/** The fields of a plan. Ids are asked for the providers that are connected, or that the plan knows. */
export const listPlanFields = (currency: string | undefined, kinds: readonly ProviderKind[]): FormField[] => [
  { key: 'name', type: 'string', title: 'Name', required: true },
  { key: 'description', type: 'text', title: 'Description', description: 'What customers read beneath the name.' },
  {
    key: 'dynamic',
    type: 'boolean',
    title: 'Each customer has a price of their own',
    description: 'An administrator sets it for each subscription.',
  },
  { key: 'monthlyPrice', type: 'number', title: 'Price a month', min: 0, isHidden: isDynamic },
  { key: 'yearlyPrice', type: 'number', title: 'Price a year', min: 0, isHidden: isDynamic },
  { key: 'currency', type: 'string', title: 'Currency', enum: currencies, default: currency, required: true },
  {
    key: 'features',
    type: 'string',
    multi: true,
    title: 'Features',
    description: 'Lines for the page with your prices. Enter adds one.',
  },
  {
    key: 'limits',
    type: 'object',
    title: 'Limits',
    description: 'Numbers by name. A limitation of a blueprint refers to one by its name.',
    Input: PlanLimitsInput,
  },
  { key: 'preview', type: 'string', title: 'Shown to customers', Input: CustomerPreview },
  ...providerKinds.filter((kind) => kinds.includes(kind)).flatMap(externalIdFields),
  { key: 'metadata', type: 'object', title: 'Metadata', description: 'Anything as JSON, for your own programs.' },
]

/** Returns the values of a form from a plan: an id of a provider has its path as its key. */
export function toPlanValues(plan: FormValues): FormValues {
  const byKind = (plan.externalIds ?? {}) as Record<string, Record<string, string>>
  const ids = Object.entries(byKind).flatMap(([kind, each]) =>
    Object.entries(each).map(([key, id]) => [`externalIds/${kind}/${key}`, id]),
  )
  return { ...plan, ...Object.fromEntries(ids) }
}

/** Returns a plan from the values of a form. Ids are sent as a whole, because the server replaces them. */
export function fromPlanValues(changes: FormValues, values: FormValues, before: FormValues = {}): FormValues {
  const { preview: _, ...plain } = Object.fromEntries(Object.entries(changes).filter(([key]) => !isIdKey(key)))
  if (!Object.keys(changes).some(isIdKey)) return plain
  const all = structuredClone((before.externalIds ?? {}) as Record<string, Record<string, string>>)
  for (const [path, value] of Object.entries(values).filter(([key]) => isIdKey(key))) {
    const [, kind = '', key = ''] = path.split('/')
    all[kind] = { ...all[kind] }
    if (value) all[kind][key] = String(value)
    else delete all[kind][key]
  }
  return { ...plain, externalIds: all }
}

const isIdKey = (key: string) => key.startsWith('externalIds/')
