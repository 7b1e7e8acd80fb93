import type { Actor } from '../../accounts/actors'
import type { Model } from '../../blueprints/model'
import { mayReadField } from '../../blueprints/permissions'
import { findNearestKey } from '../../core/nearest-key'
import type { ParameterNames } from './chart-query'

const MAX_NAMED_FIELDS = 5
const SYSTEM_TIMES = ['created', 'updated']

/** Returns the fields that a caller may group by and sum, as choices for a message. */
function listFields(model: Model, actor: Actor | undefined) {
  const readable = model.fields.filter((field) => mayReadField(field, actor))
  const keysWith = (kindHas: 'exactSum' | 'toMillis' | 'toIndexKey') =>
    readable.filter(({ kind }) => kind[kindHas]).map(({ key }) => key)
  return {
    numeric: keysWith('exactSum'),
    dates: [...keysWith('toMillis'), ...SYSTEM_TIMES],
    groups: [...keysWith('toIndexKey'), ...SYSTEM_TIMES],
  }
}

const nameChoices = (keys: string[]) => keys.slice(0, MAX_NAMED_FIELDS).join(', ')

/** Says which parameter is missing, and what to send. `other` is the field that was sent under the name of other charts. */
export function missingParameterMessage(
  model: Model,
  actor: Actor | undefined,
  { by, needs }: ParameterNames,
  other: string | undefined,
): string {
  const { numeric, groups } = listFields(model, actor)
  if (needs === 'x')
    return other
      ? `This chart groups by x. Send x=${other} instead of groupBy=${other}.`
      : `x is required: the field to group by, such as x=${groups[0]}.`
  if (!numeric.length)
    return `sum is required, but "${model.key}" has no numeric field. Use charts/bar?x=… to count entities by groups.`
  return `sum is required: the numeric field to add up, such as sum=${numeric[0]}. Add ${by}=… for groups.`
}

export const otherParameterMessage = (name: 'x' | 'groupBy', field: string) =>
  name === 'x'
    ? `A sum groups by groupBy. Send groupBy=${field} instead of x=${field}.`
    : `This chart groups by x. Send x=${field} instead of groupBy=${field}.`

export function notNumericMessage(model: Model, actor: Actor | undefined, key: string): string {
  const { numeric } = listFields(model, actor)
  const hint = numeric.length ? `Sum one of: ${nameChoices(numeric)}.` : 'The blueprint has no numeric field.'
  return `"${key}" is not numeric, so it cannot be summed. ${hint}`
}

export function notDateMessage(model: Model, actor: Actor | undefined, key: string): string {
  const { dates } = listFields(model, actor)
  return `"${key}" is not a date, so it has no intervals. Remove interval, or group by one of: ${nameChoices(dates)}.`
}

/** Returns what to say about a parameter that is neither a field nor an option, if it resembles one of a chart. */
export function misspelledParameterMessage(name: string, parameters: string[]): string | undefined {
  const near = findNearestKey(name, parameters)
  return near && `Unknown parameter "${name}". Did you mean ${near}?`
}

export const COUNT_GROUPS_MESSAGE =
  'A count has no groups. Use charts/bar?x=… or charts/pie?x=… to count entities by groups.'
