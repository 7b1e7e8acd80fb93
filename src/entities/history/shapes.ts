import { t } from 'elysia'
import { time } from '../../core/shapes'
import { flatParameter } from '../parameters'
import { Entity } from '../shapes'

/** A value before and after a version; null where there was none. */
const ChangedValue = t.Object({ from: t.Unknown(), to: t.Unknown() })

export const EntityVersion = t.Object({
  version: t.Number(),
  action: t.Union([t.Literal('create'), t.Literal('change'), t.Literal('remove')]),
  at: time,
  by: t.Nullable(t.String({ description: 'user ID; null for a guest, the server or an unknown user' })),
  changes: t.Record(t.String(), ChangedValue, {
    description:
      'changes by field key, including `user` and `workspace`; empty if the previous state is unknown. Null means no value.',
  }),
  entity: t.Optional(Entity),
})

/** What a list of versions can be asked for. */
export const versionParameters = [
  ['$limit', 'integer', 'page size; at most 100', { minimum: 0, default: 20 }],
  ['$after', 'string', 'cursor from the `Link` to the next page'],
  ['$entity', 'boolean', 'true: includes the resulting entity of each version'],
  flatParameter,
] as const
