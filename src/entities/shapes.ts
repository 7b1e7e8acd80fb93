import { t } from 'elysia'

/** The routes of entities return a `Response` themselves, so most of these shapes serve only the documentation. */
export const Entity = t.Object(
  {
    _id: t.String(),
    identifier: t.String(),
    created: t.Optional(t.String({ format: 'date-time' })),
    updated: t.Optional(t.String({ format: 'date-time' })),
    user: t.Optional(t.Nullable(t.String())),
    workspace: t.Optional(t.Nullable(t.String())),
    metadata: t.Record(t.String(), t.Unknown()),
  },
  {
    additionalProperties: true,
    description:
      'In the flat shape, each property is also at the top level. With `$select`, other properties are omitted.',
  },
)

/** Whether, and how exactly, a list is counted. */
export const CountOption = t.Union([t.Boolean(), t.Literal('estimate')])

const IdentifierShape = t.Optional(
  t.Nullable(t.String({ description: 'identifies the entity in paths; generated if omitted' })),
)

export const EntityInput = t.Object(
  { identifier: IdentifierShape, metadata: t.Optional(t.Record(t.String(), t.Unknown())) },
  {
    additionalProperties: true,
    description:
      'Properties by field key, at the top level or under `metadata`. Accepts an entity exactly as returned.',
  },
)

export const EntityBatch = t.Object({
  operations: t.Array(
    t.Object({
      op: t.Union(['create', 'update', 'upsert', 'delete'].map((op) => t.Literal(op))),
      identifier: t.Optional(t.String()),
      data: t.Optional(t.Record(t.String(), t.Unknown())),
    }),
    { maxItems: 1_000 },
  ),
})

export const EntityBatchResult = t.Object({
  results: t.Array(
    t.Object({ op: t.String(), identifier: t.String(), status: t.Number(), entity: t.Optional(Entity) }),
  ),
})

export const EntityImportResult = t.Object({
  imported: t.Number(),
  failed: t.Number(),
  errors: t.Array(t.Object({ line: t.Number(), code: t.String(), message: t.String() })),
  understood: t.Optional(
    t.Object(
      {
        separator: t.String(),
        encoding: t.String(),
        columns: t.Array(t.String(), { description: 'fields that the columns map to, in order' }),
      },
      { description: 'how a CSV file was read' },
    ),
  ),
})

export const EntitiesDeleted = t.Object({ success: t.Literal(true), deletedCount: t.Number() })
export const EntityDeleted = t.Object({ success: t.Literal(true), identifier: t.String() })

/** The response to `$explain`: how the query of a list is executed. */
export const QueryPlan = t.Object({
  driver: t.Object({ by: t.String(), of: t.Optional(t.String()) }, { description: 'what drives the query' }),
  considered: t.Array(t.Object({ of: t.String(), rows: t.Number(), more: t.Optional(t.Boolean()) })),
  left: t.Array(t.String(), { description: 'conditions checked on each row' }),
  indexes: t.Array(
    t.Object({
      field: t.Optional(t.String()),
      fields: t.Optional(t.Array(t.String(), { description: 'fields of a compound index' })),
      state: t.String({ description: 'none, building, ready, retiring or removing' }),
      reason: t.Optional(t.String()),
      serves: t.Optional(t.Boolean({ description: 'whether the query uses this compound index' })),
    }),
  ),
  reach: t.String({ description: 'all entities, or only those of the user and the workspace' }),
  order: t.Array(t.String()),
  statements: t.Array(t.Object({ sql: t.String(), rows: t.Number(), ms: t.Number() })),
  rowsRead: t.Number(),
  shown: t.Number(),
  more: t.Boolean(),
  ms: t.Number(),
})
