import { type Static, t } from 'elysia'
import { listParameter } from '../core/query-lists'
import { id, jsonObject, line, partialOf, time } from '../core/shapes'
import { listQuery } from '../storage/pagination'
import { type KindName, kindNames } from './kinds/index'

const maybe = t.Optional

const kind = t.Unsafe<KindName>(t.Union(kindNames.map((name) => t.Literal(name))))
const labels = t.Array(line(100, 1), { maxItems: 50 })

export const Connection = t.Object({
  _id: id,
  name: t.String(),
  kind,
  labels: t.Array(t.String()),
  metadata: jsonObject,
  secrets: t.Array(t.String(), { description: 'names of the secrets that are stored; nobody can read their values' }),
  created: time,
  updated: time,
})
export type Connection = Static<typeof Connection>

/** Sent keys replace stored ones, and null removes them. The kind decides which keys are valid. */
const draftFields = {
  metadata: maybe({ ...jsonObject, description: 'settings that depend on the kind, such as the URL' }),
  authentication: maybe({
    ...jsonObject,
    description: 'secrets that depend on the kind; stored encrypted and never returned',
  }),
}

export const NewConnection = t.Object({ name: line(200, 1), kind, labels: maybe(labels), ...draftFields })
export type NewConnection = Static<typeof NewConnection>

export const ConnectionChange = partialOf(NewConnection)
export type ConnectionChange = Static<typeof ConnectionChange>

/** A connection that is not stored yet. */
export const ConnectionDraft = t.Object({ kind, ...draftFields })
export type ConnectionDraft = Static<typeof ConnectionDraft>

export const ConnectionList = t.Object({
  ...listQuery,
  kind: listParameter('several values'),
  name: maybe(t.String({ description: 'only those with this name' })),
  labels: listParameter('only those with one of these labels'),
})

export const Status = t.Object({
  status: t.Union([t.Literal('connected'), t.Literal('failed')]),
  message: t.String(),
  checkedAt: time,
})
export type Status = Static<typeof Status>
