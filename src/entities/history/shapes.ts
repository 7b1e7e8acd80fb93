import { t } from 'elysia'
import { time } from '../../core/shapes'
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
