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
  by: t.Nullable(t.String({ description: 'the id of the user; null: a guest, the server, or not known' })),
  changes: t.Record(t.String(), ChangedValue, {
    description:
      'by the key of the field, also `user` and `workspace`; empty where what was before is not known. Null stands for no value.',
  }),
  entity: t.Optional(Entity),
})

/** What a list of versions can be asked for. */
export const versionParameters = [
  ['$limit', 'integer', 'page size; at most 100', { minimum: 0, default: 20 }],
  ['$after', 'string', 'the cursor of the `Link` to the next page'],
  ['$entity', 'boolean', 'true: each version has the entity as it was after it'],
  flatParameter,
] as const
