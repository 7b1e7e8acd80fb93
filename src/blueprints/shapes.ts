import type { TLiteral } from '@sinclair/typebox'
import { type Static, t } from 'elysia'
import { Workspace } from '../accounts/shapes'
import { ProblemShape } from '../core/problem'
import { id, line, part, text, textMatching, time } from '../core/shapes'
import { type TypeName, typeNames } from './fields/types'

const maybe = t.Optional
const roles = t.Array(line(100, 1), { maxItems: 100 })
const scope = t.Union([t.Literal('user'), t.Literal('workspace'), t.Literal('tenant')])

export const Field = part({
  key: textMatching(
    '^[a-zA-Z][a-zA-Z0-9_]{0,62}$',
    'Begin the key of a field with a letter, and use only letters, digits and _ (63 characters at most). Names that begin with _ belong to the system.',
  ),
  type: t.Union(typeNames.map((name) => t.Literal(name))) as unknown as TLiteral<TypeName>,
  required: maybe(t.Boolean()),
  title: maybe(line(200)),
  description: maybe(text(2_000)),
  default: maybe(t.Unknown()),
  enum: maybe(t.Array(t.Unknown(), { minItems: 1, maxItems: 1_000 })),
  min: maybe(t.Union([t.Number(), t.String({ maxLength: 100 })])),
  max: maybe(t.Union([t.Number(), t.String({ maxLength: 100 })])),
  pattern: maybe(t.String({ maxLength: 500, description: 'a regular expression in the syntax of RE2' })),
  multi: maybe(t.Boolean({ description: 'a list of values' })),
  unique: maybe(t.Boolean()),
  indexed: maybe(t.Boolean()),
  schema: maybe(t.Record(t.String(), t.Unknown(), { description: 'JSON Schema of an object' })),
  target: maybe(t.String({ maxLength: 63, description: 'the key of the blueprint that a relation points to' })),
  onDelete: maybe(t.Union([t.Literal('restrict'), t.Literal('nullify'), t.Literal('cascade')])),
  readRoles: maybe(roles),
  writeRoles: maybe(roles),
  renamedFrom: maybe(t.String({ maxLength: 63, description: 'in a change: what the field was called before' })),
})
export type Field = Static<typeof Field>

const operation = t.Union([t.Literal('create'), t.Literal('read'), t.Literal('update'), t.Literal('delete')])
export type Operation = Static<typeof operation>
export const operations: Operation[] = ['create', 'read', 'update', 'delete']

export const Rule = part({
  operation,
  scope: maybe(scope),
  guest: maybe(t.Boolean()),
  roleBased: maybe(roles),
  workspaceRoleBased: maybe(roles),
  workspaceLabelsBased: maybe(roles),
})
export type Rule = Static<typeof Rule>
export type Scope = Static<typeof scope>

const most = t.Number({ minimum: 0, multipleOf: 1, maximum: 1_000_000 })

/** The plan's limit of this name, of the subscription that is in force; `otherwise` (0 unless told) without one. */
const PlanLimit = part({ planLimit: t.String({ minLength: 1, maxLength: 100 }), otherwise: maybe(most) })
export type PlanLimit = Static<typeof PlanLimit>

export const Limitation = part({
  scope,
  workspaceLabels: maybe(roles),
  roles: maybe(roles),
  properties: maybe(t.Array(t.String({ maxLength: 63 }), { maxItems: 20 })),
  value: t.Union([most, PlanLimit], { description: 'how many, or by which limit of the plan' }),
})
export type Limitation = Static<typeof Limitation>

/** What of a blueprint is kept as one document. */
const definition = {
  fields: t.Array(Field, { maxItems: 500 }),
  permissions: maybe(t.Array(Rule, { maxItems: 200 })),
  permissionScope: maybe(scope),
  limitations: maybe(t.Array(Limitation, { maxItems: 100 })),
  computed: maybe(
    t.Record(t.String(), t.String({ maxLength: 500 }), {
      description: 'expressions of JSONata by the key of their field',
    }),
  ),
  dispatchers: maybe(part({ create: maybe(t.Boolean()), update: maybe(t.Boolean()), delete: maybe(t.Boolean()) })),
}
export const Definition = t.Object(definition)
export type Definition = Static<typeof Definition>

export const NewBlueprint = t.Object({
  key: textMatching(
    '^[a-z][a-z0-9_-]{0,62}$',
    'Begin the key with a lower-case letter, and use only lower-case letters, digits, _ and - (63 characters at most).',
  ),
  name: line(200, 1),
  description: maybe(text(10_000)),
  ...definition,
})
export type NewBlueprint = Static<typeof NewBlueprint>

export const BlueprintChange = t.Partial(t.Omit(NewBlueprint, ['key']))
export type BlueprintChange = Static<typeof BlueprintChange>

/** Something that is allowed, but probably not meant. */
export const Warning = t.Object({
  path: t.String({ description: 'a JSON pointer to what it is about' }),
  code: t.String(),
  message: t.String(),
})
export type Warning = Static<typeof Warning>

/** Those who don't edit see a blueprint without its rules. */
export const Blueprint = t.Object({
  _id: id,
  key: t.String(),
  name: t.String(),
  description: t.String(),
  fields: t.Array(Field),
  permissions: maybe(t.Array(Rule)),
  permissionScope: maybe(scope),
  limitations: maybe(t.Array(Limitation)),
  computed: maybe(t.Record(t.String(), t.String())),
  dispatchers: maybe(t.Object({ create: maybe(t.Boolean()), update: maybe(t.Boolean()), delete: maybe(t.Boolean()) })),
  warnings: maybe(
    t.Array(Warning, {
      description: 'labels and roles of workspaces that its rules name although others than admins can give them',
    }),
  ),
  created: time,
  updated: time,
  alteration: maybe(
    t.Object(
      {
        state: t.Union([t.Literal('preparing'), t.Literal('cleaning'), t.Literal('failed')]),
        done: t.Number(),
        total: t.Number(),
        since: time,
        problem: maybe(ProblemShape),
      },
      { description: 'how far the change of its entities is: it comes into force as soon as all are prepared' },
    ),
  ),
})

/** Something for which a change can't be made. */
export const Obstacle = t.Object({
  field: t.String(),
  code: t.String(),
  message: t.String(),
  count: t.Number({ description: 'how many entities it is about' }),
  examples: t.Array(t.String(), { description: 'identifiers of up to ten of them, for those who may read all' }),
  duplicates: maybe(
    t.Array(t.Object({ value: t.Unknown(), identifiers: t.Array(t.String()) }), {
      description: 'up to ten values that several have, with up to ten of those',
    }),
  ),
})
export type Obstacle = Static<typeof Obstacle>

/** What a change would do. */
export const Rehearsal = t.Object({
  dryRun: t.Literal(true),
  entities: t.Number({ description: 'how many there are' }),
  breaking: t.Number({ description: 'how many of them would not fit' }),
  rewritten: t.Number({ description: 'how many of them would be changed or indexed anew' }),
  problems: t.Array(Obstacle),
})

export const Explained = t.Object({
  operation,
  allowed: t.Boolean(),
  reach: t.Nullable(
    t.Object(
      { all: t.Boolean(), user: t.Nullable(t.String()), workspace: t.Nullable(t.String()) },
      { description: 'all entities, or those of the user and those of the workspace' },
    ),
  ),
  because: t.String(),
  rules: t.Array(t.Object({ index: t.Number(), rule: Rule, applies: t.Boolean(), because: t.String() })),
})

/** Which rules allow what to whom, and why the others don't. */
export const Explanation = t.Object({
  blueprint: t.String(),
  user: t.Nullable(t.Object({ _id: t.String(), roles: t.Array(t.String()) }), { description: 'null: a guest' }),
  workspace: t.Nullable(Workspace),
  operations: t.Array(Explained),
})

export const ExplanationQuery = t.Object({
  user: maybe(t.String({ description: 'an id; without one it is about guests' })),
  workspace: maybe(t.String({ description: 'the id of the workspace that the user is to be active in' })),
  operation: maybe(t.Union([operation, t.Literal(''), t.Literal('undefined')])),
})
