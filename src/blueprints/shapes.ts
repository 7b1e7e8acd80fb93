import { type Static, t } from 'elysia'
import { ActiveWorkspace } from '../accounts/shapes'
import { ProblemShape } from '../core/problem'
import { id, line, strictObject, text, textMatching, time, withKeyPolicy } from '../core/shapes'
import { type FieldTypeName, fieldTypeNames } from './fields'
import { ThumbnailSize } from './file-fields'

const optional = t.Optional
const roles = t.Array(line(100, 1), { maxItems: 100 })
const SIZE_MESSAGE = 'Write bytes, or a size such as 500K, 10M or 1G.'
const scope = t.Union([t.Literal('user'), t.Literal('workspace'), t.Literal('tenant')])

export const Field = strictObject({
  key: textMatching(
    '^[a-zA-Z][a-zA-Z0-9_]{0,62}$',
    'Begin the key of a field with a letter, and use only letters, digits and _ (63 characters at most). Names that begin with _ belong to the system.',
  ),
  type: t.Unsafe<FieldTypeName>(t.Union(fieldTypeNames.map((name) => t.Literal(name)))),
  required: optional(t.Boolean()),
  title: optional(line(200)),
  description: optional(text(2_000)),
  default: optional(t.Unknown()),
  enum: optional(t.Array(t.Unknown(), { minItems: 1, maxItems: 1_000 })),
  min: optional(t.Union([t.Number(), t.String({ maxLength: 100 })])),
  max: optional(t.Union([t.Number(), t.String({ maxLength: 100 })])),
  pattern: optional(t.String({ maxLength: 500, description: 'regular expression in RE2 syntax' })),
  multi: optional(t.Boolean({ description: 'a list of values' })),
  unique: optional(t.Boolean()),
  indexed: optional(
    t.Boolean({ description: 'by default, an index is built when a query first needs it, and removed when unused' }),
  ),
  schema: optional(
    t.Record(t.String(), t.Unknown(), {
      description: 'JSON Schema for an object; $schema selects the dialect: 2020-12 (default), 2019-09 or draft-07',
    }),
  ),
  target: optional(t.String({ maxLength: 63, description: 'key of the blueprint that a relation points to' })),
  accept: optional(
    t.Array(
      textMatching('^[a-z0-9.+-]+/(\\*|[a-z0-9.+-]+)$', 'Write media types such as image/png or image/*.', {
        maxLength: 100,
      }),
      { minItems: 1, maxItems: 50, description: 'media types of uploaded files that a file field accepts' },
    ),
  ),
  maxSize: optional(
    t.Union([t.Number({ minimum: 1, multipleOf: 1 }), textMatching('^[1-9]\\d{0,11}[KMGkmg]?$', SIZE_MESSAGE)], {
      description: 'maximum size of uploaded files that a file field accepts: bytes, or a text such as 500K or 10M',
    }),
  ),
  thumbs: optional(
    t.Array(ThumbnailSize, {
      ...{ minItems: 1, maxItems: 20, uniqueItems: true },
      description: 'extra thumbnail sizes for this file field, in addition to those in the files-configuration',
    }),
  ),
  onDelete: optional(t.Union([t.Literal('restrict'), t.Literal('nullify'), t.Literal('cascade')])),
  readRoles: optional(roles),
  writeRoles: optional(roles),
  renamedFrom: optional(t.String({ maxLength: 63, description: 'in updates: the previous key of the field' })),
})
export type Field = Static<typeof Field>

const operation = t.Union([t.Literal('create'), t.Literal('read'), t.Literal('update'), t.Literal('delete')])
export type Operation = Static<typeof operation>
export const operations: Operation[] = ['create', 'read', 'update', 'delete']

export const Rule = strictObject({
  operation,
  scope: optional(scope),
  guest: optional(t.Boolean()),
  roleBased: optional(roles),
  workspaceRoleBased: optional(roles),
  workspaceLabelsBased: optional(roles),
})
export type Rule = Static<typeof Rule>
export type Scope = Static<typeof scope>

const limitCount = t.Number({ minimum: 0, multipleOf: 1, maximum: 1_000_000 })

/** The limit of this name in the plan of the current subscription; without one, `otherwise` (default: 0). */
const PlanLimit = strictObject(
  { planLimit: t.String({ minLength: 1, maxLength: 100 }), otherwise: optional(limitCount) },
  { 'x-name': 'of plan' },
)
export type PlanLimit = Static<typeof PlanLimit>

export const Limitation = strictObject({
  scope,
  workspaceLabels: optional(roles),
  roles: optional(roles),
  properties: optional(t.Array(t.String({ maxLength: 63 }), { maxItems: 20 })),
  value: t.Union([limitCount, PlanLimit], { description: 'a number, or the name of a plan limit' }),
})
export type Limitation = Static<typeof Limitation>

export const History = t.Union(
  [
    t.Boolean(),
    strictObject(
      {
        versions: optional(
          t.Number({ minimum: 2, maximum: 1_000, multipleOf: 1, description: 'versions per entity; defaults to 100' }),
        ),
        days: optional(
          t.Number({
            minimum: 1,
            maximum: 3_650,
            multipleOf: 1,
            description: 'age of a version in days; defaults to 365',
          }),
        ),
      },
      { 'x-name': 'limits' },
    ),
  ],
  {
    description:
      'records every change and earlier state of entities: true, or retention limits. Disabling history deletes the records.',
  },
)

/** Which changes of its entities a blueprint reports as events. */
export const Dispatchers = strictObject({
  create: optional(t.Boolean()),
  update: optional(t.Boolean()),
  delete: optional(t.Boolean()),
})

/** The parts of a blueprint that are stored as one document. */
const definitionProperties = {
  fields: t.Array(Field, { maxItems: 500 }),
  permissions: optional(t.Array(Rule, { maxItems: 200 })),
  permissionScope: optional(scope),
  limitations: optional(t.Array(Limitation, { maxItems: 100 })),
  computed: optional(
    t.Record(t.String(), t.String({ maxLength: 500 }), { description: 'JSONata expressions by field key' }),
  ),
  dispatchers: optional(Dispatchers),
  history: optional(History),
}
export const Definition = t.Object(definitionProperties)
export type Definition = Static<typeof Definition>

/** What other servers offer. Data would be lost or kept against the will of those who rely on it. */
const unsupportedParts = withKeyPolicy({ unsupported: ['ttl', 'softDelete', 'checks', 'unique', 'retention', 'trash'] })

export const NewBlueprint = t.Object(
  {
    key: textMatching(
      '^[a-z][a-z0-9_-]{0,62}$',
      'Begin the key with a lower-case letter, and use only lower-case letters, digits, _ and - (63 characters at most).',
    ),
    name: line(200, 1),
    description: optional(text(10_000)),
    ...definitionProperties,
  },
  unsupportedParts,
)
export type NewBlueprint = Static<typeof NewBlueprint>

export const BlueprintChange = t.Partial(t.Omit(NewBlueprint, ['key']), unsupportedParts)
export type BlueprintChange = Static<typeof BlueprintChange>

/** A setting that is allowed, but probably unintended. */
export const Warning = t.Object({
  path: t.String({ description: 'JSON pointer to the affected part' }),
  code: t.String(),
  message: t.String(),
})
export type Warning = Static<typeof Warning>

/** Callers who are not editors see a blueprint without its rules. */
export const Blueprint = t.Object({
  _id: id,
  key: t.String(),
  name: t.String(),
  description: t.String(),
  fields: t.Array(Field),
  permissions: optional(t.Array(Rule)),
  permissionScope: optional(scope),
  limitations: optional(t.Array(Limitation)),
  computed: optional(t.Record(t.String(), t.String())),
  dispatchers: optional(Dispatchers),
  history: optional(History),
  warnings: optional(
    t.Array(Warning, {
      description:
        'workspace labels and roles that rules rely on but non-admins can assign, flaws in object schemas, and computed decimals that are not exact',
    }),
  ),
  created: time,
  updated: time,
  alteration: optional(
    t.Object(
      {
        state: t.Union([t.Literal('preparing'), t.Literal('cleaning'), t.Literal('failed')]),
        done: t.Number(),
        total: t.Number(),
        since: time,
        problem: optional(ProblemShape),
      },
      { description: 'progress of a migration of entities, which takes effect once all are migrated' },
    ),
  ),
})
export type Blueprint = Static<typeof Blueprint>

/** What the index of a field was built for. */
export const IndexReason = t.Union([
  t.Literal('setting'),
  t.Literal('relation'),
  t.Literal('file'),
  t.Literal('unique'),
  t.Literal('list or object'),
  t.Literal('limitation'),
  t.Literal('filter'),
  t.Literal('sort'),
  t.Literal('chart'),
  t.Literal('list'),
  t.Literal('earlier version'),
])
export type IndexReason = Static<typeof IndexReason>

export const FieldIndexShape = t.Object({
  field: t.String({ description: 'first of the fields' }),
  fields: t.Array(t.String(), {
    description: 'The field. For a compound index, the fields with given values, followed by the sort field.',
  }),
  state: t.Union([t.Literal('building'), t.Literal('ready'), t.Literal('retiring'), t.Literal('removing')], {
    description: 'Queries use only ready indexes. Unused indexes are retired, then removed.',
  }),
  reason: IndexReason,
  since: t.String({ description: 'time of the last state change' }),
  used: t.String({ description: 'time of last use by a query; up to a day late' }),
})

/** A reason why a change cannot be made. */
export const BlueprintChangeProblem = t.Object({
  field: t.String(),
  code: t.String(),
  message: t.String(),
  count: t.Number({ description: 'number of affected entities' }),
  examples: t.Array(t.String(), {
    description: 'identifiers of up to ten affected entities; empty for callers who cannot read all entities',
  }),
  duplicates: optional(
    t.Array(t.Object({ value: t.Unknown(), identifiers: t.Array(t.String()) }), {
      description: 'up to ten duplicate values, each with up to ten identifiers',
    }),
  ),
})
export type BlueprintChangeProblem = Static<typeof BlueprintChangeProblem>

/** The effect that a change would have. */
export const BlueprintDryRun = t.Object({
  dryRun: t.Literal(true),
  entities: t.Number({ description: 'number of entities' }),
  breaking: t.Number({ description: 'number of entities that would become invalid' }),
  rewritten: t.Number({ description: 'number of entities that would be rewritten or reindexed' }),
  problems: t.Array(BlueprintChangeProblem),
})

export const UpdatedBlueprint = t.Union([BlueprintDryRun, Blueprint])

export const OperationExplanation = t.Object({
  operation,
  allowed: t.Boolean(),
  reach: t.Nullable(
    t.Object(
      { all: t.Boolean(), user: t.Nullable(t.String()), workspace: t.Nullable(t.String()) },
      { description: 'all entities, or those of the user and of the workspace' },
    ),
  ),
  because: t.String(),
  rules: t.Array(t.Object({ index: t.Number(), rule: Rule, applies: t.Boolean(), because: t.String() })),
})

/** Explains which rules allow an operation, and why the others do not. */
export const PermissionExplanation = t.Object({
  blueprint: t.String(),
  user: t.Nullable(t.Object({ _id: t.String(), roles: t.Array(t.String()) }), { description: 'null for guests' }),
  workspace: t.Nullable(ActiveWorkspace),
  operations: t.Array(OperationExplanation),
})

export const ExplanationQuery = t.Object({
  user: optional(t.String({ description: 'user ID; omit for guests' })),
  workspace: optional(t.String({ description: 'ID of the active workspace of the user' })),
  operation: optional(t.Union([operation, t.Literal(''), t.Literal('undefined')])),
})
