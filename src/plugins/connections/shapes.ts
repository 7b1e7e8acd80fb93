import { type Static, t } from 'elysia'
import { change, free, id, line, time } from '../../core/shapes'
import { listing } from '../../storage/lists'
import { type KindName, kindNames } from './kinds'

const maybe = t.Optional

const kind = t.Unsafe<KindName>(t.Union(kindNames.map((name) => t.Literal(name))))
const labels = t.Array(line(100, 1), { maxItems: 50 })

export const Connection = t.Object({
  _id: id,
  name: t.String(),
  kind,
  labels: t.Array(t.String()),
  metadata: free,
  created: time,
  updated: time,
})
export type Connection = Static<typeof Connection>

/** Of what there is already, what is sent takes the place, and null takes away. What else there is, its kind says. */
const kept = {
  metadata: maybe({ ...free, description: 'where it is, and what else is known of it, by kind' }),
  authentication: maybe({ ...free, description: 'its secrets, by kind: kept encrypted, and never told' }),
}

export const NewConnection = t.Object({ name: line(200, 1), kind, labels: maybe(labels), ...kept })
export type NewConnection = Static<typeof NewConnection>

export const ConnectionChange = change(NewConnection)
export type ConnectionChange = Static<typeof ConnectionChange>

/** One that is not kept yet. */
export const ConnectionDraft = t.Object({ kind, ...kept })
export type ConnectionDraft = Static<typeof ConnectionDraft>

export const ConnectionList = t.Object({
  ...listing,
  kind: maybe(t.String({ description: 'comma-separated' })),
  name: maybe(t.String({ description: 'only those of this name' })),
  labels: maybe(t.String({ description: 'those that have one of these, comma-separated' })),
})

export const Status = t.Object({
  status: t.Union([t.Literal('connected'), t.Literal('failed')]),
  message: t.String(),
  checkedAt: time,
})
export type Status = Static<typeof Status>
