import { readMoment } from '../../blueprints/fields/cell-notation'
import type { Model } from '../../blueprints/model'
import type { TimeZone } from '../../core/time-zone'

/** Gives the times of an entity that name no zone the one that they are in. */
export function addTimeZone({ fields }: Model, data: unknown, zone: TimeZone): void {
  const toMoment = (value: unknown) => (typeof value === 'string' ? (readMoment(value, { zone }) ?? value) : value)
  const { metadata } = (data ?? {}) as { metadata?: unknown }
  for (const part of [data, metadata] as Record<string, unknown>[]) {
    if (part === null || typeof part !== 'object' || Array.isArray(part)) continue
    for (const { key, type } of fields)
      if (type === 'datetime' && Object.hasOwn(part, key))
        part[key] = Array.isArray(part[key]) ? part[key].map(toMoment) : toMoment(part[key])
  }
}
