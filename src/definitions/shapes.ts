import { type Static, t } from 'elysia'
import { kindNames } from './kinds'

const maybe = t.Optional
const files = t.Record(t.String(), t.String(), {
  description: 'file contents by path, such as `blueprints/books.json`',
})
const versionsBy = (description: string) => t.Record(t.String(), t.String(), { description })

export const Definitions = t.Object({ files, versions: versionsBy('versions of definitions by path') })

export const DefinitionDiff = t.Object({
  files,
  versions: maybe(versionsBy('versions from the last pull or push; later changes cause 412')),
  secrets: maybe(t.Record(t.String(), t.String(), { description: 'values of placeholders in files, by name' })),
  prune: maybe(t.Boolean({ description: 'whether to delete definitions without a file' })),
})
export const DefinitionPush = t.Object({
  ...DefinitionDiff.properties,
  pruneData: maybe(t.Boolean({ description: 'with `prune`: also delete the entities of deleted blueprints' })),
})

const actions = ['create', 'change', 'remove', 'rename'] as const
const oneOf = <Name extends string>(names: readonly Name[]) =>
  t.Unsafe<Name>(t.Union(names.map((name) => t.Literal(name))))

const Change = t.Object({
  action: oneOf(actions),
  kind: oneOf(kindNames),
  name: t.String(),
  details: maybe(t.Array(t.String())),
  entities: maybe(t.Number({ description: 'number of entities of the blueprint' })),
})

export const DefinitionDiffResult = t.Object({
  changes: t.Array(Change),
  missingSecrets: t.Array(t.String(), { description: 'placeholders that require a value to push' }),
  keptSecrets: t.Array(t.String(), { description: 'placeholders with stored values, which a push may replace' }),
})
export const DefinitionPushResult = t.Object({
  changes: t.Array(Change, { description: 'changes made' }),
  versions: t.Record(t.String(), t.Nullable(t.String()), {
    description: 'versions of pushed definitions; null for deleted ones',
  }),
  remaining: t.Number({ description: 'number of remaining changes; repeat the request to apply them' }),
})
export type DefinitionPushResult = Static<typeof DefinitionPushResult>
